#!/bin/sh
# fresh.sh -- stage fresh: tasks never seen, by draws (seeds 9 to 12) that nothing was chosen by; the configurations of models.sh without profile tuner.
set -eu
SECTIONS=fresh exec sh scripts/results/models.sh
