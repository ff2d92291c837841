# tasks of a network: with TVM's keys, as a file that cdmpp-extract reads; what is not supported
list="cdmpp-profile --list-tasks"
$list --network vgg-11 | tail -n 4
$list --network vgg-11 --target cuda | tail -n 1
$list --network vgg-11 --json --out-tasks vgg.tasks.json | grep -c '"weight": '
cdmpp-extract --tasks vgg.tasks.json --write-tasks | grep -c '"workload_key": .*,$'
cp "$ROOT/tests/profiler/data/opaque.onnx" .
$list --model-source onnx --network opaque.onnx --json 2>/dev/null | sed -n '/"unsupported"/,$p'
$list --model-source onnx --network opaque.onnx >/dev/null; echo "status $?"
$list --network vgg-11 --layout nhcw; echo "status $?"
$list; echo "status $?"
echo "--- a known operator behind an unknown one: neither is a task, the others are"
cdmpp-profile --list-tasks --model-source onnx --network "$ROOT/tests/profiler/data/known_behind.onnx" 2>/dev/null; echo "exit $?"
