#!/bin/sh
# templates.sh -- ten templates against 1,000 random trials on the registered tasks, on this machine: stage templates, by hand.
#
#   scripts/results/run.sh templates
#
# Some hours, on a machine with nothing else to do. A run that was stopped goes on with its logs.
set -eu
python3 -B scripts/bench_templates.py "$W/logs" --table "$W/templates.md" --figure "$W/figure.txt"
python3 -B scripts/results/figures.py put templates "table:main=$W/templates.md" "$(cat "$W/figure.txt")"
