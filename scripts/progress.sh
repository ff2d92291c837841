# progress.sh -- for scripts to source: how far a step is, on standard error, every second on a terminal (one line, redrawn), else
# a line every two seconds.
#
#   progress_begin "build: files" count 1012     `count` prints how many are done; the total may be left out
#   ...
#   progress_end
progress_pid=
progress_begin() {
    (
        trap 'exit 0' TERM
        t=0
        while :; do
            n=$($2 2>/dev/null) || n=
            if [ -t 2 ]; then printf '\r%s %s%s, %d s ' "$1" "${n:-0}" "${3:+ of $3}" "$t" >&2; step=1
            elif [ "$t" -gt 0 ]; then echo "$1 ${n:-0}${3:+ of $3}, $t s" >&2; step=2
            else step=2; fi
            sleep $step
            t=$((t + step))
        done
    ) &
    progress_pid=$!
}
progress_end() {
    [ -n "$progress_pid" ] || return 0
    kill "$progress_pid" 2>/dev/null || :
    wait "$progress_pid" 2>/dev/null || :
    progress_pid=
    [ ! -t 2 ] || printf '\r%60s\r' '' >&2
}
