#!/bin/sh
# curves24.sh -- how errors of models of the CPU with 24 threads fall with data: stage curves24 (scripts/results/curves24.py, scripts/results/threads24.py,
# scripts/results/threads24_score.py). It goes on where it was stopped. Needs 3 GB of disk, and a clone of the records in ANSOR_BENCH. scripts/results/render.py draws the pictures from its figures.
set -eu
[ -d "${ANSOR_BENCH:-}" ] || { echo "results: curves24: ANSOR_BENCH names no clone of thaisacs/TVM-Ansor-Bench" >&2; exit 1; }
python3 -B scripts/results/curves24.py "$W" >"$W/figures.txt"
# shellcheck disable=SC2046 # figures, no blanks inside
SEED='' python3 -B scripts/results/figures.py put models-curves24 "table:programs=$W/programs.md" "table:tasks=$W/tasks.md" $(cat "$W/figures.txt")
