#!/bin/sh
# Operators of language models on GPUs that a training has not seen: a part of scripts/results/llm_operators.sh (called by run.sh).
set -eu
export PART=gpus
. scripts/results/llm_operators.sh
