# stages of a network run here beside one operator after the other: values, what is told; a device that is no processor
unset CDMPP_MODELS
exec 2>&1
export XDG_CACHE_HOME=$PWD/cache
cat >two.json <<'J'
{"cdmpp_machine": 1, "devices": [
 {"name": "a", "kind": "cpu", "core": 0, "memory": 0, "launch_s": 2e-7, "sync_s": 1e-6},
 {"name": "b", "kind": "cpu", "core": 0, "memory": 0, "launch_s": 2e-7, "sync_s": 1e-6},
 {"name": "m", "kind": "model", "memory": 0, "launch_s": 2e-7, "sync_s": 1e-6}], "links": []}
J
net() { cdmpp-partition --model gcn --input-size 32 --machine two.json --target llvm --cost-model "$ROOT/tests/golden/model_v1.cdmpp" --as zen5-avx2 --trials 2 --no-split -q "$@"; }
net --devices a,b --stages --run --budget 0.05 >1.txt; echo "exit $?"
sed -n 's/^ *run here: stages .*x); \(1 of 1.*\)/\1/p' 1.txt
net --devices a,b --stages --run --budget 0.05 --json >1.json; echo "exit $?"
grep -o '"run":{"measured_s":[0-9.e-]*,"alone_measured_s":[0-9.e-]*,"predicted_s":[0-9.e-]*,"blocks":1,"blocks_run":1,"operators_that_differ":0,"block":\[{"block":0,' 1.json | sed 's/[0-9.e-]*[0-9],"/N,"/g'
net --devices a,m --stages --run --budget 0.05 >2.txt; echo "exit $?"; tail -n 1 2.txt
