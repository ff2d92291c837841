# operators of a network: from a file, with other sizes, built in; what is not supported, and what is wrong
for f in whole opaque external_shape negative cycle float_input; do cp "$ROOT/tests/profiler/data/$f.onnx" .; done
onnx="cdmpp-profile --list-ops --model-source onnx --model-name"
$onnx whole.onnx --batch-size 2 --dim height=16; echo "status $?"
$onnx whole.onnx; echo "status $?"
$onnx whole.onnx --batch-size 2 --dim height=16 --dim depth=3; echo "status $?"
$onnx opaque.onnx; echo "status $?"
$onnx opaque.onnx --json 2>/dev/null | sed 's/.*"unsupported"/"unsupported"/'; echo "status $?"
$onnx external_shape.onnx; echo "status $?"
$onnx negative.onnx; echo "status $?"
$onnx cycle.onnx; echo "status $?"
$onnx none.onnx; echo "status $?"
$onnx float_input.onnx --input image --input mask --json | sed 's/.*"inputs"/"inputs"/; s/,"outputs".*//'
cdmpp-profile --list-ops --model-name resnet-18 --batch-size 2 | tail -n 1
cdmpp-profile --list-ops --model-name resnet-19; echo "status $?"
cdmpp-profile --list-ops --model-name resnet-18 --dim a=1; echo "status $?"
cdmpp-profile --list-ops --model-source onnx; echo "status $?"
cdmpp-profile --list-ops --model-source torch --model-name x; echo "status $?"
