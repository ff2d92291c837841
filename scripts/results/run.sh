#!/bin/sh
# run.sh [STAGE...] -- measure what docs/results publishes, and write its pages; `make results`.
#
#   scripts/results/run.sh                 all stages that need no quiet machine; those that are up to date are left out
#   scripts/results/run.sh --list          which are up to date, and how long each took
#   FORCE=1 scripts/results/run.sh quick   once more
#
# A stage (stages.txt) is keyed by the digests of its code, its configuration and its data. Its figures, docs/results/figures/*.json,
# hold that key (of code a digest of each room that it uses): a stage whose key is still the same does not run. What it works with is in build/results/NAME-KEY, so a run that was stopped
# goes on, and nothing of other code is taken. A stage that evaluates a test set with code that has not seen it adds a look to the set's file.
# Exit status: 1 where a stage fails or a promised bar is missed.
set -eu
cd "$(dirname "$0")/../.."
. scripts/tied.sh
here=scripts/results
: "${B:=build/release}" "${JOBS:=$(nproc)}" "${SEED:=1}" "${CDMPP_DATA:=}"
export B JOBS SEED CDMPP_DATA
py="python3 -B"
split() { echo "$1" | tr ',' ' '; }
lines() { grep -v '^#' $here/stages.txt; }
hash() { [ -z "$1" ] && echo - || $py $here/figures.py digest $1; }
of() { sed -n "s/^ \"$1\": \"\{0,1\}\([^\",]*\).*/\1/p" "docs/results/figures/$2.json" 2>/dev/null; }

# The script of a stage and those that it names, and those name: what they do is part of the configuration.
scripts_of() {
    all=$here/$1.sh
    for _ in 1 2; do
        # shellcheck disable=SC2086 # names
        all=$({ echo $all; grep -oh 'scripts/[a-z_/]*\.\(sh\|py\|awk\)' $all | grep -v '/figures.py$'; } | tr ' ' '\n' | sort -u | tr '\n' ' ')
    done
    echo "$all"
}

# Sets code, config, data (digests) and missing of a line of stages.txt.
key() {
    missing=
    code=$(for r in $(split "$3"); do printf '%s:%.8s ' "$r" "$(hash "$r")"; done)
    code=${code% }
    config=$(hash "$(scripts_of "$1") $([ "$4" = - ] || split "$4" | sed 's|[^ ]*|configs/&|g')")
    paths=
    for d in $(split "$5"); do
        case $d in data:*) d=$CDMPP_DATA/${d#data:} ;; esac
        [ -e "$d" ] || { missing=$d; continue; }
        paths="$paths $d"
    done
    # where the data are is nothing that a figure depends on
    data=$([ -n "$missing" ] && echo - || for d in $paths; do (cd "$(dirname "$d")" && $py "$OLDPWD/$here/figures.py" digest "$(basename "$d")"); done | tr '\n' ' ' | cksum | cut -d' ' -f1)
}
# same NAME: is that stage of this key?
current() { [ "$(of source "$1")" = run ] && [ "$(of code "$1") $(of config "$1") $(of data "$1")" = "$code $config $data" ]; }
all_current() { for f in $(split "$1"); do current "$f" || return 1; done; }

if [ "${1:-}" = --list ]; then
    printf '%-12s %-12s %-10s %s\n' stage state seconds figures
    lines | while read -r name stages rooms configs sets tests when; do
        key "$name" "$stages" "$rooms" "$configs" "$sets"
        state=older
        if [ -n "$missing" ]; then state="no data"; elif all_current "$stages"; then state=current; fi
        printf '%-12s %-12s %-10s %s\n' "$name" "$state" "$(of seconds "${stages%%,*}")" "$stages"
    done
    exit 0
fi

bad=0
[ $# -gt 0 ] || set -- $(lines | awk '$NF == "auto" { print $1 }')
for s; do
    line=$(lines | awk -v s="$s" '$1 == s') || :
    [ -n "$line" ] || { echo "results: no stage $s in $here/stages.txt" >&2; exit 2; }
    # shellcheck disable=SC2086 # columns
    set_line() { name=$1 stages=$2 rooms=$3 configs=$4 sets=$5 tests=$6; }
    # shellcheck disable=SC2086
    set_line $line
    key "$name" "$stages" "$rooms" "$configs" "$sets"
    if [ -n "$missing" ]; then echo "results: $s: left out, there is no $missing" >&2; continue; fi
    if [ -z "${FORCE:-}" ] && all_current "$stages"; then echo "results: $s: up to date ($(of seconds "${stages%%,*}") s)" >&2; continue; fi
    W=build/results/$s-$(echo "$code $config $data $SEED" | cksum | cut -d' ' -f1)
    failed=
    mkdir -p "$W"
    t0=$(date +%s) before=$(cat "$W/seconds" 2>/dev/null || echo 0) # of runs that did not end
    T0=$((t0 - before)) W=$W CODE=$code CONFIG=$config DATA=$data TEST_SETS=$([ "$tests" = - ] || split "$tests") $tied sh "$here/$s.sh" || failed=" "
    echo $(($(date +%s) - t0 + before)) >"$W/seconds"
    if [ -n "$failed" ] || ! all_current "$stages"; then
        echo "results: $s: failed${failed:-, it did not write all figures of $stages}" >&2
        bad=1
        continue
    fi
    echo "results: $s: $(cat "$W/seconds") s" >&2
    [ "$tests" = - ] || for t in $(split "$tests"); do scripts/test_set_look.sh --by "$(echo "$code" | cksum | cut -d' ' -f1)" "$t" "make results, $s" >&2; done
done
$py $here/render.py || bad=1
exit $bad
