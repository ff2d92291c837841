#!/bin/sh
# quick.sh -- examples/zen5 by task, the small form that make check-long repeats: stage quick (called by run.sh).
set -eu
python3 -B scripts/results/quick.py run "$W" >"$W/figures.txt"
# shellcheck disable=SC2046 # a figure a line, no blanks
SEED='' python3 -B scripts/results/figures.py put quick $(cat "$W/figures.txt")
