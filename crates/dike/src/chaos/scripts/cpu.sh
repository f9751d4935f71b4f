# Without a sleep shorter than a second, a share of the cores is a whole number of busy loops, rounded up.
spin() {
    # The loops end with the guard even if nobody ends them.
    while kill -0 $$ 2>/dev/null; do
        i=0
        while [ $i -lt 20000 ]; do i=$((i + 1)); done
    done
}

fault_start() {
    if [ -z "$cores" ]; then
        cores=$(grep -c '^processor' /proc/cpuinfo) || { why 'the cores cannot be counted'; return 1; }
    fi
    loops=$(((cores * load_percent + 99) / 100))
    why "$loops busy loops"
    while [ $loops -gt 0 ]; do
        spin 3<&- &
        pids="$pids $!"
        loops=$((loops - 1))
    done
}

fault_undo() {
    # One that was only just forked can lose a signal that can be caught.
    [ -z "$pids" ] || kill -KILL $pids
    wait $pids 2>/dev/null
    return 0
}
