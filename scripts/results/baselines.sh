#!/bin/sh
# baselines.sh -- cdmpp beside other people's cost models, examples/zen5 by task: stage baselines (scripts/results/baselines.py).
set -eu
python3 -B scripts/results/baselines.py "$W" >"$W/main.md"
SEED='' python3 -B scripts/results/figures.py put quick-baselines "table:main=$W/main.md"
