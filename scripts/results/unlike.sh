#!/bin/sh
# unlike.sh -- intervals of programs that are new to a model in one way: stage models-unlike (scripts/results/unlike.py). It goes on where it was stopped.
set -eu
python3 -B scripts/results/unlike.py "$W" "$W/main.md" >"$W/figures.txt"
# shellcheck disable=SC2046 # a figure a line, no blanks
SEED='' python3 -B scripts/results/figures.py put models-unlike "table:main=$W/main.md" $(cat "$W/figures.txt")
