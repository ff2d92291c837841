#!/bin/sh
# kshot.sh -- a CPU of which 3, 10 or 200 programs were measured: stage kshot (scripts/results/kshot.py). It goes on where it was stopped.
set -eu
python3 -B scripts/results/kshot.py "$W" "$W/main.md" >"$W/figures.txt"
# shellcheck disable=SC2046 # a figure a line, no blanks
SEED='' python3 -B scripts/results/figures.py put models-kshot "table:main=$W/main.md" $(cat "$W/figures.txt")
