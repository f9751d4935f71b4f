# Reads or writes one file in $directory over and over. It has no name from the first moment on, so that
# nothing is left of it whatever happens.
hammer() {
    trap 'kill $! 2>/dev/null; exit' TERM
    while kill -0 $$ 2>/dev/null; do
        dd $1 2>/dev/null &
        wait $! || sleep 1
    done
}

fault_start() {
    file=$directory/dike-disk.$$
    (umask 077 && set -C && : >"$file") || return 1
    exec 4<>"$file"
    rm -f "$file"
    write="if=/dev/zero of=/dev/fd/4 bs=1048576 count=$file_mib conv=notrunc"
    if [ "$access" = write ]; then
        dd if=/dev/zero of=/dev/fd/4 bs=1048576 count=1 conv=notrunc,fsync 2>/dev/null && write="$write,fsync"
        work=$write
    else
        dd $write 2>/dev/null || { why "a file of $file_mib MiB cannot be written in $directory"; return 1; }
        sync
        work='if=/dev/fd/4 of=/dev/null bs=1048576'
        if dd $work count=1 iflag=direct 2>/dev/null; then
            work="$work iflag=direct"
        else
            why 'direct reads are not possible here: this reads the page cache'
        fi
    fi
    while [ "$workers" -gt 0 ]; do
        hammer "$work" 3<&- &
        pids="$pids $!"
        workers=$((workers - 1))
    done
}

fault_undo() {
    [ -n "$pids" ] || return 0
    kill $pids
    # One that was only just forked can lose it.
    (sleep 1 && kill $pids) >/dev/null 2>&1 3<&- 4<&- &
    again=$!
    wait $pids 2>/dev/null
    kill -KILL $again 2>/dev/null
    return 0
}
