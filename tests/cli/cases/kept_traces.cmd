# traces and the store: all that is read of the examples' traces and of records, table by table
. "$T/lib.sh"
exec 2>&1
cp "$ROOT"/examples/traces/* .
told() { "$@" 2>&1 | rounded; }
P="cdmpp-profile trace"
for f in nvprof nvprof_summary nsys_trace nsys_summary ncu ncu_raw cutlass; do
    echo "== $f"
    told $P $f.csv
    told $P $f.csv --json -q
    told $P $f.csv --device v100 --save-graph $f.g.json --labels $f.l.csv -q >text
    [ ! -e $f.g.json ] || rounded $f.g.json
    [ ! -e $f.l.csv ] || rounded $f.l.csv
done
for f in autograd onnxruntime trtexec_profile trtexec_times; do
    echo "== $f"
    told $P $f.json --save-graph $f.g.json
    told $P $f.json --json -q
    rounded $f.g.json
done
told $P onnxruntime.json --range model_run
told $P trtexec_profile.json --map trtexec_layers.json
echo "== habana, kineto"
told $P habana.json --map habana-graph.json --save-graph h.json --json; rounded h.json
told $P kineto1.json kineto2.json kineto3.json; told $P kineto1.json kineto2.json kineto3.json --json --range 'ProfilerStep*'
told $P kineto3.json kineto1.json --network resnet-18
printf 'kernel,operator\ngemm*,MatMul\n*relu*,Relu\nvolta*,Conv\n' >map.csv
for f in nsys_trace nvprof ncu; do told $P $f.csv --map map.csv; done
