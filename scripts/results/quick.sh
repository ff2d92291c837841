#!/bin/sh
# quick.sh -- the small form that make check-long repeats: stage quick (called by run.sh).
set -eu
python3 -B scripts/results/quick.py run "$W" >"$W/figures"
SECONDS_=$(($(date +%s) - T0))
# shellcheck disable=SC2046 # a figure a line, no blanks
SECONDS=$SECONDS_ SEED= python3 -B scripts/results/figures.py put quick $(cat "$W/figures")
