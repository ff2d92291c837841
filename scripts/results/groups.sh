#!/bin/sh
# groups.sh -- the same with twins on one side of the split: stage groups (scripts/results/quick.py).
set -eu
python3 -B scripts/results/groups.py "$W" >"$W/figures.txt"
# shellcheck disable=SC2046 # a figure a line, no blanks
SEED='' python3 -B scripts/results/figures.py put quick-groups $(cat "$W/figures.txt")
