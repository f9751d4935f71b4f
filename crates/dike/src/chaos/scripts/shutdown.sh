# Runs here, not on the machine that goes down. $reach is what gets a command there, and
# $shutdown is the command, quoted.
fault_start() {
    # A status of 255 is what ssh says both of a machine that went down at once and of one that cannot be
    # reached.
    captured "$reach true" || { why 'the machine cannot be reached'; return 1; }
    [ -z "$power_on" ] || say "hint $power_on"
    down=1
    captured "$reach $shutdown"
    case $result in 0 | 255) return 0 ;; esac
    return 1
}

fault_undo() {
    [ -z "$power_on" ] || [ -z "$down" ] || captured "$power_on"
}
