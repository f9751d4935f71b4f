# Sets the clock off by $offset_ms. How far it has to be set back is not left to the skewed clock: the time at
# the start plus what has passed since by the monotonic one (/proc/uptime), also if somebody else has set the
# clock meanwhile.

# Waits for the next tick of /proc/uptime, which has hundredths of a second: sets $now_cs to it.
tick() {
    read -r before _ </proc/uptime || return 1
    after=$before
    while [ "$after" = "$before" ]; do read -r after _ </proc/uptime; done
    now_cs=${after%.*}${after#*.}
}

# Sets the clock to this many nanoseconds since 1970.
set_clock() {
    date -s "@$(($1 / 1000000000)).$(printf %09d $(($1 % 1000000000)))" >/dev/null
}

fault_start() {
    tick || { why 'there is no /proc/uptime'; return 1; }
    start_cs=$now_cs
    start_ns=$(date +%s%N)
    case $start_ns in '' | *[!0-9]*) why 'date does not know nanoseconds (GNU date does)'; return 1 ;; esac
    if [ "$offset_ms" -lt 0 ]; then back="+ $((-offset_ms))"; else back="- $offset_ms"; fi
    say "hint date -s @\$((\$(date +%s) $back / 1000))"
    skewed=1
    set_clock $((start_ns + offset_ms * 1000000))
}

fault_undo() {
    [ -n "$skewed" ] || return 0
    tick
    set_clock $((start_ns + (now_cs - start_cs) * 10000000))
}
