#!/bin/sh
# code_changed.sh COMMIT TASKS LOG... -- which records have programs whose C a commit changed: are labels of a generator with a fault among them?
#
# Builds cdmpp-profile as it was before COMMIT and as of it, each in a work tree of its own under $W, prints the sources of all
# records by both, and the lines FILE:NUMBER of those that differ. With CHECK=1 also the results of these programs by the older
# one, against their tasks' without schedules: "wrong" or "same" stands behind the line.
#
#   CHECK=1 scripts/code_changed.sh 7635019 examples/zen4/zen4.tasks.json.xz examples/zen4/measure_records/zen4/records.json.xz
set -eu
cd "$(dirname "$0")/.."
W=${W:-build/code_changed}
[ $# -ge 3 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
commit=$(git rev-parse --verify "$1^{commit}") tasks=$2
shift 2
mkdir -p "$W"
W=$(cd "$W" && pwd)
trap 'for v in before after; do git worktree remove --force "$W/$v" 2>/dev/null || :; done' EXIT
for v in before after; do
    at=$commit
    [ $v = after ] || at=$commit~
    git worktree add --quiet --detach "$W/$v" "$at"
    make -C "$W/$v" build/release/cdmpp-profile >"$W/$v.log" 2>&1 || { tail -n 5 "$W/$v.log" >&2; exit 1; }
    # 3: some programs cannot be written in C at all, neither before nor after
    "$W/$v/build/release/cdmpp-profile" records --tasks "$tasks" --emit-source --out "$W/$v.c" "$@" >/dev/null 2>&1 || [ $? -eq 3 ]
done

# One line for each program: FILE:NUMBER, a tab, its text.
programs() { awk '/^\/\* .+:[0-9]+ \*\/$/ { printf "%s%s\t", n++ ? "\n" : "", $2; next } n { printf "%s\001", $0 } END { if (n) print "" }' "$1"; }
programs "$W/before.c" >"$W/before.txt"
programs "$W/after.c" >"$W/after.txt"
awk -F '\t' 'NR == FNR { text[$1] = $2; next } text[$1] != $2 { print $1 }' "$W/before.txt" "$W/after.txt" >"$W/changed"
echo "$(wc -l <"$W/before.txt") programs, $(wc -l <"$W/changed") changed" >&2

if [ -z "${CHECK:-}" ]; then
    cat "$W/changed"
    exit 0
fi
while read -r place; do
    rm -f "$W/one.out"
    case $place in *.xz:*) cat=xzcat ;; *.gz:*) cat=zcat ;; *) cat=cat ;; esac
    $cat "${place%:*}" | sed -n "${place##*:}p" >"$W/one.json"
    if "$W/before/build/release/cdmpp-profile" records -q --check --budget-ms 1 --tasks "$tasks" --out "$W/one.out" "$W/one.json" >/dev/null 2>&1; then
        echo "$place same"
    else
        grep -q '"r": \[\[1e+10\], 5,' "$W/one.out" && echo "$place wrong" || echo "$place cannot be run"
    fi
done <"$W/changed"
