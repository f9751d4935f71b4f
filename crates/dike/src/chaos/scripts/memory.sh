# tail keeps the last bytes of what it reads in memory until its input ends, and its input ends with us.
fault_start() {
    if [ -n "$percent_of_available" ]; then
        kib=$(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo)
        [ -n "$kib" ] || { why 'the available memory is not known'; return 1; }
        mib=$((kib / 1024 * percent_of_available / 100))
    fi
    fifo=${TMPDIR:-/tmp}/dike-memory.$$
    mkfifo -m 600 "$fifo" || return 1
    tail -c $((mib * 1048576)) <"$fifo" >/dev/null 3<&- &
    holder=$!
    exec 5>"$fifo"
    rm -f "$fifo"
    why "$mib MiB"
    dd if=/dev/zero bs=1048576 count="$mib" >&5 2>/dev/null && return 0
    why 'the memory could not be held'
    return 1
}

fault_undo() {
    exec 5>&-
    [ -z "$holder" ] || kill "$holder" 2>/dev/null
    wait "$holder" 2>/dev/null
    return 0
}
