fault_start() {
    find_processes || return 1
    say "hint kill -CONT$pids"
    signal STOP || return 1
    # What was forked while we stopped the others.
    before=$pids
    descend
    [ "$pids" = "$before" ] || { say "hint kill -CONT$pids" && signal STOP; }
}

fault_undo() {
    [ -z "$pids" ] || signal CONT
}
