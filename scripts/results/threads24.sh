#!/bin/sh
# threads24.sh -- models of a CPU with 24 threads, by TLP's protocol: stage threads24 (scripts/results/threads24.py, scripts/results/threads24_score.py).
# It goes on where it was stopped. Needs 3 GB of disk, and a clone of the records in ANSOR_BENCH.
set -eu
[ -d "${ANSOR_BENCH:-}" ] || { echo "results: threads24: ANSOR_BENCH names no clone of thaisacs/TVM-Ansor-Bench" >&2; exit 1; }
python3 -B scripts/results/threads24.py "$W" >"$W/figures.txt"
# shellcheck disable=SC2046 # figures, no blanks inside
SEED='' python3 -B scripts/results/figures.py put models-threads24 "table:main=$W/main.md" "table:networks=$W/networks.md" "table:trials=$W/trials.md" "table:splits=$W/splits.md" $(cat "$W/figures.txt")
