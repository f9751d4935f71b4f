# The user's command puts the fault in place with DIKE_PHASE=start, and undoes it with DIKE_PHASE=stop.
fault_start() {
    say "hint $hint"
    asked=1
    DIKE_PHASE=start
    export DIKE_PHASE
    captured "$hook"
}

# Also after a start that failed: it may have done half of its work.
fault_undo() {
    [ -n "$asked" ] || return 0
    DIKE_PHASE=stop
    captured "$hook"
}
