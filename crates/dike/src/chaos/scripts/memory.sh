# dd fills a block of the size asked for, and then waits to write it to us, who take one byte of it. It ends with us.
fault_start() {
    if [ -n "$percent_of_available" ]; then
        kib=$(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo)
        [ -n "$kib" ] || { why 'the available memory is not known'; return 1; }
        mib=$((kib / 1024 * percent_of_available / 100))
    fi
    fifo=${TMPDIR:-/tmp}/dike-memory.$$
    mkfifo -m 600 "$fifo" || return 1
    dd if=/dev/zero bs=$((mib * 1048576)) count=1 iflag=fullblock >"$fifo" 2>/dev/null 3<&- &
    holder=$!
    exec 5<"$fifo"
    rm -f "$fifo"
    why "$mib MiB"
    # The first byte comes when all of them are there.
    [ "$(dd bs=1 count=1 <&5 2>/dev/null | wc -c)" -eq 1 ] && return 0
    why 'the memory could not be held'
    return 1
}

fault_undo() {
    exec 5<&-
    [ -z "$holder" ] || kill -KILL "$holder" 2>/dev/null
    wait "$holder" 2>/dev/null
    return 0
}
