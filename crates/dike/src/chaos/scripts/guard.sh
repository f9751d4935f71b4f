# The watch over one fault: puts it in place, says so, waits, undoes it.
#
# It waits for whichever is first: the end of its standard input (Dike wants the fault undone, or has died, or
# the connection has), $limit seconds, or a signal. All three end in fault_undo.
#
# Above this text stand the parameters and the functions fault_start and fault_undo. What is said on standard
# output with the prefix "dike-guard" is for Dike, everything else is for the journal.

say() { printf '\ndike-guard %s\n' "$*"; }
why() { printf '%s\n' "$*"; }

# Runs a command of the user. Its output takes the way through a file: a server that is started like this
# would otherwise hold our pipe open, and die of it when nobody reads any more.
captured() {
    output=${TMPDIR:-/tmp}/dike-guard.$$
    (umask 077 && set -C && : >"$output") 2>/dev/null || output=/dev/null
    sh -c "$1" </dev/null >"$output" 2>&1 3<&-
    result=$?
    if [ "$output" != /dev/null ]; then
        dd if="$output" bs=4096 count=1 2>/dev/null
        rm -f "$output"
    fi
    [ $result = 0 ] || why "exit status $result of: $1"
    return $result
}

finish() {
    # Caught, not ignored: what is ignored stays so in the server that the undo may start.
    trap : TERM INT HUP
    if fault_undo; then
        status=0
        say undone
    else
        status=1
        say undo-failed
    fi
    [ -z "$timer$reader" ] || kill -KILL $timer $reader 2>/dev/null
    exit $status
}

timer= reader=
# Nobody may be left to read what we say. That is no reason to stop.
trap : PIPE
trap finish TERM INT HUP
# One stream keeps words and reasons in order.
exec 3<&0 </dev/null 2>&1
say "hint kill -TERM $$ || [ ! -d /proc/$$ ]"
# Some shells count with 32 bits: too few for bytes of memory and for nanoseconds.
if [ $((1 << 40)) != 1099511627776 ]; then
    why 'the shell here does not count with 64 bits'
    say failed
    say undone
    exit 1
fi
fault_start || { say failed; finish; }
sleep "$limit" 3<&- 4<&- 5<&- &
timer=$!
(
    read -r _ <&3
    # Whoever was only just forked, and is not yet what it is to be, can lose a signal that can be caught.
    kill -KILL $timer
) 4<&- 5<&- &
reader=$!
say started
wait $timer 2>/dev/null
finish
