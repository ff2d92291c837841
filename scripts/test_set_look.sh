#!/bin/sh
# test_set_look.sh NAME WHY [RESULT] -- write down that a test set was looked at (docs/results/test-sets/NAME.txt).
#
# Whoever evaluates on a test set and may change something by what it shows says so here; pages name the count of looks. WHY: for which
# change. `make results` does it by itself, with --by DIGEST of the code: a look by code that has looked already is none.
set -eu
cd "$(dirname "$0")/.."
by=-
if [ "${1:-}" = --by ]; then by=$2; shift 2; fi
[ $# -eq 2 ] || [ $# -eq 3 ] || { sed -n '2s/^# //p' "$0" >&2; exit 2; }
f=${TEST_SETS_DIR:-docs/results/test-sets}/$1.txt
[ -f "$f" ] || { echo "test_set_look: no test set $1 (${f%/*})" >&2; exit 2; }
case "$2${3:-}" in *"|"*) echo "test_set_look: no | in texts" >&2; exit 2 ;; esac
if [ "$by" != - ] && grep -q "^look |[^|]*|[^|]*| $by |" "$f"; then exit 0; fi
{ cat "$f"; echo "look | $(date -u +%Y-%m-%d) | $(git rev-parse --short=8 HEAD 2>/dev/null || echo -) | $by | $2 | ${3:-in the page}"; } >"$f.tmp"
mv "$f.tmp" "$f"
echo "test_set_look: $1: $(grep -c '^look |' "$f") looks"
