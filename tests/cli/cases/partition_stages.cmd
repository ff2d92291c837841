# stages of a network run here beside one operator after the other: values, what is told; a device that is no processor
# Long: no sanitizer.
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
echo "--- convolutions that read one tensor, merged where the model says that it pays"
cnn() { cdmpp-partition --network inception-v1 --input-size 32 --machine two.json --target llvm --cost-model "$ROOT/tests/golden/model_v1.cdmpp" --as zen5-avx2 --trials 2 --no-split -q "$@"; }
cnn --devices a --stages=merge --save-merged m.onnx >3.txt; echo "exit $?"
grep -o 'of 9 sets, 36 ways were planned' 3.txt; grep -c '^  block [0-9] merged .*, 1.00x the operations  Conv_[0-9]*+Conv_' 3.txt | sed 's/^[1-9][0-9]*$/some/'
cdmpp-profile --list-tasks --model-source onnx --network m.onnx --target llvm | grep -c 'Conv' | sed 's/^[1-9][0-9]*$/tasks/'
cnn --devices a --stages=merge --json | grep -o '"strategy":"merge"\|"kind":"merge"\|"merged":{"sets_found":9,"ways_planned":36' | sort -u
cnn --devices a,b --stages=sequential | grep -c ' | '
net --devices a --stages=merge | tail -n 1
net --devices a --stages=wide; echo "exit $?"
net --devices a --stages --save-merged m.onnx; echo "exit $?"
echo "--- operators in pieces"
net --devices a,b --stages=split --run --budget 0.05 >4.txt; echo "exit $?"
grep -c '^  block 0 stage [0-9]* .* / 2$' 4.txt | sed 's/^[1-9][0-9]*$/some/'; sed -n 's/^ *run here: stages .*x); \(1 of 1.*\)/\1/p' 4.txt
net --devices a,b --stages=split --json | grep -o '"strategy":"split"\|"kind":"split","pieces":2' | sort -u
net --devices a --stages=split | grep -c ' / ' || :
