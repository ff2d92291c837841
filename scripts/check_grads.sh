#!/bin/sh
# check_grads.sh [CASE...] -- gradients that cdmpp derives against PyTorch's autograd, by value: operators with their attributes, losses, updates
# (tests/reference/grad_cases.py), modules that PyTorch exports (grad_modules.py). Needs python3-torch and python3-onnx in $PYTHON, python3 or
# /usr/bin/python3. "--can": exit status 0 where they are. Last line: "gradients: N passed, M failed".
set -eu
cd "$(dirname "$0")/.."
B=${B:-build/release} found=
for p in ${PYTHON:-python3 /usr/bin/python3}; do
    [ -n "$found" ] || ! "$p" -c 'import numpy, onnx, torch' 2>/dev/null || found=$p
done
[ -n "$found" ] || { echo "check_grads: no Python with numpy, onnx and torch" >&2; exit 1; }
[ "${1:-}" != --can ] || exit 0
exec "$found" tests/reference/grads_torch.py "$B/tests/reference/grad_values" "$@"
