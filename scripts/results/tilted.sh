#!/bin/sh
# tilted.sh -- stage tilted: XGBoost on the splits of models.sh, with the same kind of answer as cdmpp.
set -eu
SECTIONS=tilted exec sh scripts/results/models.sh
