# a network as tasks on units: the plan, a run here with its values, and what is refused
unset CDMPP_MODELS
exec 2>&1
export XDG_CACHE_HOME=$PWD/cache
pack() { cdmpp-partition pack --cost-model "$ROOT/tests/golden/model_v1.cdmpp" --as zen5-avx2 --trials 2 --target llvm -q "$@" 2>&1; echo "exit $?"; }
pack --units 2 --network gcn --input-size 32
pack --units 2 --network gcn --input-size 32 --json | sed 's/"operators":.*//; s/\(_s\|_possible_s\)":[0-9.e-]*/\1":N/g'
pack --units 1 --network gcn --input-size 32 | head -n 6
pack --units 64 --network "$T/randwire.onnx" | head -n 6
cat >slow.json <<'J'
{"cdmpp_machine": 1, "devices": [{"name": "cpu0", "kind": "cpu", "core": 0, "memory": 0, "launch_s": 1e-6, "sync_s": 1e-3}], "links": []}
J
echo "--- waiting takes longer than all of it: nothing is cut"
pack --units 2 --network gcn --input-size 32 --machine slow.json | head -n 5
echo "--- run"
pack --units 1 --network gcn --input-size 32 --run --budget 0.01 >1.txt; tail -n 1 1.txt
sed -n 's/.*\(values: [a-z]*\).*/\1/p; s/^\(way .*best\).*/\1/p' 1.txt
pack --units 1 --network gcn --input-size 32 --run --budget 0.01 --json >1.json
grep -o '"name":"[a-z ,]*","predicted_s":[0-9.e-]*,"calls":[0-9]*,"waits":[0-9]*,"measured_s":[0-9.e-]*,"low_s":[0-9.e-]*,"high_s":[0-9.e-]*,"best_s":[0-9.e-]*,"turns":[0-9]*,"results_that_differ":[0-9]*' 1.json | sed 's/_s":[0-9.e-]*/_s":N/g; s/"turns":[0-9]*/"turns":N/'
echo "--- refused"
pack --units 100000 --network gcn --input-size 32 --run | sed 's/may use [0-9]*/may use N/'
pack --units 2 --network "$ROOT/tests/profiler/data/opaque.onnx"
pack --units 2 --network gcn --network gcn
pack --network gcn
pack --units 2 --network gcn t.csv
pack --units 2 --network gcn --budget 1
pack --units 2 t.csv
cdmpp-partition pack --units 2; echo "exit $?"
cdmpp-partition pack --units 2 --run t.csv; echo "exit $?"
cdmpp-partition pack --units 2 --seed 0 t.csv; echo "exit $?"
cdmpp-partition pack --units 2 --network nowhere; echo "exit $?"
