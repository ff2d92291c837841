#!/bin/sh
# live_zen5.sh -- the networks of live.sh on a Zen 5: stage live_zen5 (scripts/results/live.sh).
set -eu
MACHINE=turin sh scripts/results/live.sh
