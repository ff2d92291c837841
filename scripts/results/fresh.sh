#!/bin/sh
# fresh.sh -- stage fresh: tasks never seen, by draws (seeds 5 to 8) that nothing was chosen by; the configurations of models.sh without profile tuner, with their trees
# alone and whole.
set -eu
SECTIONS=${SECTIONS:-"trees fresh"} exec sh scripts/results/models.sh
