#!/bin/sh
# calibrated.sh -- a CPU that no model saw, and calibrated: stage calibrated (scripts/results/calibrated.py). It goes on where it was stopped.
set -eu
python3 -B scripts/results/calibrated.py "$W" "$W/main.md" >"$W/figures.txt"
# shellcheck disable=SC2046 # a figure a line, no blanks
SEED='' python3 -B scripts/results/figures.py put models-calibrated "table:main=$W/main.md" $(cat "$W/figures.txt")
