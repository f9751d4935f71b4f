# Sets $pids to the processes that are meant, with all their descendants: a database of many processes is hit
# as one. One of $pid, $pid_file and $pids_from is set.
find_processes() {
    if [ -n "$pid_file" ]; then
        read -r pid _ <"$pid_file" || [ -n "$pid" ] || { why "no process id in $pid_file"; return 1; }
    elif [ -n "$pids_from" ]; then
        pid=$(sh -c "$pids_from" </dev/null 3<&-) || { why "exit status $? of: $pids_from"; return 1; }
    fi
    pids=' '
    for one in $pid; do
        case $one in *[!0-9]* | 0* | 1) why "not the id of a process that may be hit: $one"; return 1 ;; esac
        if [ -n "$pids_from" ]; then
            # What looks for a pattern in command lines finds it in ours as well.
            case $one in $$ | $PPID) continue ;; esac
        fi
        [ -d "/proc/$one" ] || { why "there is no process $one"; return 1; }
        pids="$pids$one "
    done
    [ "$pids" != ' ' ] || { why 'there is no such process'; return 1; }
    descend
    case $pids in *" $$ "*) why 'this would hit the fault injection itself'; return 1 ;; esac
}

# Adds the descendants of $pids to it, until there are no new ones.
descend() {
    more=1
    while [ $more = 1 ]; do
        more=0
        for stat in /proc/[0-9]*/stat; do
            { read -r line <"$stat"; } 2>/dev/null || continue
            child=${line%% *}
            # The name of a program may have spaces and parentheses.
            set -- ${line##*') '}
            case $pids in *" $child "*) continue ;; esac
            case $pids in *" $2 "*) pids="$pids$child " more=1 ;; esac
        done
    done
}

# Sends a signal to all of them. Those that have ended meanwhile are no failure.
signal() {
    result=0
    for one in $pids; do
        kill -"$1" "$one" || [ ! -d "/proc/$one" ] || result=1
    done
    return $result
}
