fault_start() {
    find_processes || return 1
    [ -z "$restart" ] || say "hint $restart"
    killed=1
    signal KILL || return 1
    tries=0
    while [ $tries -lt 50 ]; do
        left=
        for one in $pids; do
            { read -r line <"/proc/$one/stat"; } 2>/dev/null || continue
            set -- ${line##*') '}
            [ "$1" = Z ] || left="$left $one"
        done
        [ -n "$left" ] || return 0
        tries=$((tries + 1))
        sleep 0.1 3<&- || sleep 1 3<&-
    done
    why "these processes do not end:$left"
    return 1
}

fault_undo() {
    [ -z "$restart" ] || [ -z "$killed" ] || captured "$restart"
}
