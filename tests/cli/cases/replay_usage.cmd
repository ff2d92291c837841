exec 2>&1
cdmpp-replay; echo "exit $?"
cdmpp-replay --graph x.json operand; echo "exit $?"
cdmpp-replay --graph x.json --batch 1; echo "exit $?"
cdmpp-replay --network resnet-18 --batch 0; echo "exit $?"
cdmpp-replay --graph x.json --json --csv; echo "exit $?"
cdmpp-replay --graph x.json --deadline-ms 5; echo "exit $?"
cdmpp-replay --network resnet-18 --cpu-time; echo "exit $?"
cdmpp-replay --graph x.json --level 2; echo "exit $?"
cdmpp-replay --graph x.json --gap-us fast; echo "exit $?"
cdmpp-replay --graph x.json --policy fair; echo "exit $?"
cdmpp-replay --graph x.json --replay-given --from-records; echo "exit $?"
cdmpp-replay --graph x.json --run; echo "exit $?"
cdmpp-replay --network resnet-18 --layout nhcw; echo "exit $?"
cdmpp-replay --network resnet-18 --wat-if op=a,scale=1; echo "exit $?"
cdmpp-replay net.onnx; echo "exit $?"
echo "--- devices: a list, and names that are near"
M=$ROOT/tests/golden/model_v1.cdmpp
printf -- '- {name: mine, kind: cpu, cores: 8, clock_mhz: 3000, simd_bits: 256}\n- {name: yours, kind: gpu, cores: 8, clock_mhz: 1000}\n' >own.yaml
unset CDMPP_MODELS
cdmpp-replay --list-devices --cost-model "$M" --devices own.yaml | sed "s|$ROOT/||" >list.txt
grep 'model$\|zen5\|mine\|yours' list.txt; grep -c 'h100\|graviton2' list.txt # ours behind them
cdmpp-replay --list-devices --devices own.yaml --json | grep -o '^.*"yours"[^}]*\|{"name":"h200"[^}]*'
cdmpp-partition --list-devices --cost-model "$M" --device-file own.yaml | grep yours
cdmpp-replay --network resnet-18 --cost-model "$M" --devices own.yaml --device zen-avx2; echo "exit $?"
cdmpp-partition -q --network resnet-18 --cost-model "$M" --devices cpu0 --as mien --device-file own.yaml; echo "exit $?"
cdmpp-replay --network resnet-18 --cost-model "$M" --devices zen4; echo "exit $?"
cdmpp-partition -q --network resnet-18 --cost-model "$M" --device-file zen4; echo "exit $?"
echo "--- a target of no kind"
cdmpp-replay --network resnet-18 --cost-model "$ROOT/tests/golden/model_v1.cdmpp" --device zen5-avx2 --target lvm 2>&1; echo "exit $?"
cdmpp-partition -q --network resnet-18 --cost-model "$ROOT/tests/golden/model_v1.cdmpp" --as zen5-avx2 --target 'ocl0=opencll' 2>&1; echo "exit $?"
echo "--- cores of the devices of a table: a column where they differ"
cores() { cdmpp-replay -q --network squeezenet-1.1 --input-size 64 --trials 1 --cost-model "$M" --device "$@"; }
cores zen5-avx2,graviton2 | sed -n 's/^network  *device  *\([a-z]*\)  *batch.*/\1/p; s/^squeezenet-1.1  *\([a-z0-9-]*\)\( (as [a-z0-9-]*)\)*  *\([0-9]*\)  *1 .*/\1 \3/p'
cores zen5-avx2,zen5-avx512 | grep -c cores
cores zen5-avx2,graviton2 --json | grep -o '"device":"[^"]*","cores":[0-9]*'
