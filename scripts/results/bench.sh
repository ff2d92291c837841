#!/bin/sh
# bench.sh -- what scripts/bench.sh prints, as figures: stage bench, on a quiet machine. They take the place of those of the same name in bench.json.
set -eu
scripts/bench.sh >"$W/printed.txt"
# shellcheck disable=SC2046 # a figure a line, no blanks
SEED='' python3 -B scripts/results/figures.py put bench-printed $(python3 -B scripts/bench_bars.py "$W/printed.txt" --figures)
