# cdmpp-partition: what is refused before anything is planned
. "$T/lib.sh"
unset CDMPP_MODELS
exec 2>&1
no() { plain cdmpp-partition "$@"; echo "exit $?"; }
M=$ROOT/tests/golden/model_v1.cdmpp
no
no --model resnet-18 --model squeezenet-1.1
no --model resnet-18 extra
no net.onnx
no --model resnet-18 --split --no-split
no --model resnet-18 --no-split --dims H
no --model resnet-18 --plan p.json --compare
no --model resnet-18 --stage-length 2
no --model resnet-18 --margin 1.5
no --model resnet-18 --cover nan
no --model resnet-18 --fixed-share=-0.1
no --model resnet-18 --granules 1
no --model resnet-18 --goal best
no --model resnet-18 --layout nhcw
no --model resnet-18 --inject slow:ocl0=2
no --model resnet-18 --run --inject slow:ocl0=0
no --model resnet-18 --run --inject melt:ocl0
no --model resnet-18 --run --inject break:
no --model resnet-18 --list-patterns
echo "--- devices"
no --model resnet-18
no --model resnet-18 --devices cpu0,npu3 --cost-model "$M"
no --model resnet-18 --devices cpu0,cpu0 --cost-model "$M"
no -q --model resnet-18 --devices cpu0,ocl0 --cost-model "$M" --as v100
no -q --model resnet-18 --devices cpu0,ocl0 --cost-model "$M"
no -q --model resnet-18 --devices cpu0,ocl0 --cost-model "$M" --as zen5-avx2 --times ocl1=30
no -q --model resnet-18 --devices cpu0,ocl0 --cost-model "$M" --as zen5-avx2 --times ocl0=0
no -q --model resnet-18 --devices cpu0,ocl0 --cost-model "$M" --as zen5-avx2 --as ocl1=zen5-avx512
no -q --model resnet-18 --cost-model nosuch.cdmpp
no -q --model resnet-19 --cost-model "$M" --as zen5-avx2
echo "--- machines"
cat >m.json <<'J'
{"cdmpp_machine": 1, "devices": [
 {"name": "cpu0", "kind": "cpu", "core": 0, "memory": 0, "launch_s": 2e-7, "sync_s": 1e-6},
 {"name": "far0", "kind": "opencl", "opencl": "pocl:0/2.1", "memory": 1, "launch_s": 2e-6, "sync_s": 1e-6},
 {"name": "cpu1", "kind": "cpu", "core": 1, "memory": 0, "launch_s": 2e-7, "sync_s": 1e-6}], "links": []}
J
no --model resnet-18 --machine m.json --cost-model "$M"
no --model resnet-18 --machine m.json --devices cpu0,ocl0 --cost-model "$M"
sed 's/2e-6/NaN/' m.json >nan.json; no --model resnet-18 --machine nan.json --cost-model "$M"
sed 's/2e-6/-1/' m.json >minus.json; no --model resnet-18 --machine minus.json --cost-model "$M"
no --model resnet-18 --machine nosuch.json --cost-model "$M"
echo "--- networks"
no -q --model "$ROOT/tests/profiler/data/cycle.onnx" --cost-model "$M" --as zen5-avx2
no -q --model "$ROOT/tests/profiler/data/known_behind.onnx" --cost-model "$M" --as zen5-avx2
no -q --model nosuch.onnx --cost-model "$M" --as zen5-avx2
echo "--- words"
no lnik
no link
no curv
echo "--- an OpenCL device that is not here"
none() { OCL_ICD_VENDORS=/nonexistent cdmpp-partition --network squeezenet-1.1 --input-size 64 --cost-model "$ROOT/tests/golden/model_v1.cdmpp" --as zen5-avx2 --trials 2 "$@" 2>&1; }
none --devices cpu0,ocl0 | sed 's/ is not on this machine (.*):/ is not on this machine (WHY):/'
none | grep -c 'ocl0 is not on this machine'
# an ONNX file that is there needs no option
cdmpp-partition "$ROOT/examples/resnet18.onnx" --cost-model nosuch.cdmpp --list-devices; echo "exit $?"
