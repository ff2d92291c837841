#!/bin/sh
# transfer24.sh -- records of 24 threads for CPUs of one thread, and back: stage transfer24 (scripts/results/transfer24.py; its data are those of scripts/results/threads24.py and
# scripts/results/kshot.py). It goes on where it was stopped. Needs 1 GB of disk, and a clone of the records in ANSOR_BENCH.
set -eu
[ -d "${ANSOR_BENCH:-}" ] || { echo "results: transfer24: ANSOR_BENCH names no clone of thaisacs/TVM-Ansor-Bench" >&2; exit 1; }
python3 -B scripts/results/transfer24.py "$W" "$W/main.md" "$W/back.md" "$W/both.md" >"$W/figures.txt"
# shellcheck disable=SC2046 # figures, no blanks inside
SEED='' python3 -B scripts/results/figures.py put models-transfer24 "table:main=$W/main.md" "table:back=$W/back.md" "table:both=$W/both.md" $(cat "$W/figures.txt")
