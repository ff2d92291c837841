#!/bin/sh
# curves24_all.sh -- stage curves24_all: curves24.py with all logs of the searches. It goes on where it was stopped. Needs 10 GB of disk, and a clone of the records in ANSOR_BENCH.
set -eu
[ -d "${ANSOR_BENCH:-}" ] || { echo "results: curves24_all: ANSOR_BENCH names no clone of thaisacs/TVM-Ansor-Bench" >&2; exit 1; }
python3 -B scripts/results/curves24.py "$W" all >"$W/figures.txt"
# shellcheck disable=SC2046 # figures, no blanks inside
SEED='' python3 -B scripts/results/figures.py put models-curves24-all "table:programs=$W/all.md" $(cat "$W/figures.txt")
