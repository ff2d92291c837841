#!/bin/sh
# check_onnx.sh -- what cdmpp-profile infers against onnx's own shape inference: operators with drawn attributes (tests/reference/onnx_ops.py) and,
# where CDMPP_DATA is set, its networks, whose operations are compared with formulas and published counts, too (tests/reference/onnx_shapes.py). Needs
# python3-onnx in $PYTHON, python3 or /usr/bin/python3. "--can": exit status 0 where it is. Last line: "onnx: N passed, M failed".
set -eu
cd "$(dirname "$0")/.."
B=${B:-build/release} ROUNDS=${ROUNDS:-10} found=
for p in ${PYTHON:-python3 /usr/bin/python3}; do
    [ -n "$found" ] || ! "$p" -c 'import numpy, onnx' 2>/dev/null || found=$p
done
[ -n "$found" ] || { echo "check_onnx: no Python with numpy and onnx" >&2; exit 1; }
[ "${1:-}" != --can ] || exit 0
out=$(mktemp)
died=0
ask() { # a script that ends before its counts has failed
    "$@" >"$out.one" 2>&1 || grep -q '^onnx.*: [0-9]* passed, [0-9]* failed$' "$out.one" || died=$((died + 1))
    cat "$out.one" >>"$out"
}
trap 'rm -f "$out" "$out.one"' EXIT
ask "$found" tests/reference/onnx_attrs.py .
ask "$found" tests/reference/onnx_ops.py "$B/cdmpp-profile" "$ROUNDS"
if [ -d "${CDMPP_DATA:-}/onnx" ]; then ask "$found" tests/reference/onnx_shapes.py "$B/cdmpp-profile" "$CDMPP_DATA/onnx"; fi
cat "$out"
sed -n 's/^onnx.*: \([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$out" |
    awk -v died="$died" '{ p += $1; f += $2 } END { f += died; printf "onnx: %d passed, %d failed\n", p, f; exit f > 0 || p == 0 }'
