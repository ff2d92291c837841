#!/bin/sh
# left_out.sh -- networks that a model never saw, each left out once: stage left_out (scripts/results/left_out.py). It goes on where it was stopped.
set -eu
python3 -B scripts/results/left_out.py "$W" >"$W/figures.txt"
tables=$(for t in networks medians seeds fastest ablation; do echo "table:$t=$W/$t.md"; done)
# shellcheck disable=SC2046,SC2086 # a figure or a table a line, no blanks
SEED='' python3 -B scripts/results/figures.py put models-left-out $tables $(cat "$W/figures.txt")
