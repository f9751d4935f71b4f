# Prints the counters of this machine every $interval_s seconds, until nobody wants them any more: the
# standard input ends, or the output cannot be written.
exec 3<&0 </dev/null
(
    read -r _ <&3
    kill $$
) &
reader=$!
trap 'kill $reader $pause 2>/dev/null; exit' TERM INT HUP PIPE
pause=
while :; do
    read -r uptime _ </proc/uptime || exit 1
    printf 'dike-collect begin %s\n' "$uptime" || break
    while read -r line; do
        case $line in cpu*) printf '%s\n' "$line" ;; *) break ;; esac
    done </proc/stat
    printf 'dike-collect memory\n'
    while read -r line; do
        case $line in MemTotal:* | MemAvailable:*) printf '%s\n' "$line" ;; esac
    done </proc/meminfo
    printf 'dike-collect disks\n'
    cat /proc/diskstats
    printf 'dike-collect network\n'
    cat /proc/net/dev
    printf 'dike-collect end\n' || break
    sleep "$interval_s" 3<&- &
    pause=$!
    wait $pause
done
kill $reader 2>/dev/null
