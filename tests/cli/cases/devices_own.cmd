# a file that describes one device alone: those that cdmpp brings along stand behind it, in every command that takes such a file; what it replaces is told
. "$T/lib.sh"
export CDMPP_SERVING=$ROOT/configs/serving.yaml XDG_CACHE_HOME=$PWD/cache
unset CDMPP_MODELS
S=$ROOT/examples/serving M=$ROOT/tests/golden/model_v1.cdmpp
echo '- {name: board, kind: gpu, clock_mhz: 1700, cores: 100, lanes: 128, bandwidth_gb_s: 2000, l2_kb: 40000, bf16_tflops: 500, link_gb_s: 300, mem_gb: 80, warp: 32}' >board.yaml
sed 's/name: board/name: h100/' board.yaml >h100.yaml
echo "--- a training names GPUs of ours; so do tables and questions"
cdmpp-train "$S/operators.yaml" --quiet --set data.files="[$S/operators.csv]" --set operators.rounds=5 --set device.file=board.yaml --out ops.cdmpp | grep -c 'rows trained on'
for f in board h100; do cdmpp-replay --llm "$S/config.json" --cost-model ops.cdmpp --measured "$S/operators.csv" --devices $f.yaml --gpu h100_sxm,h200,$f --isl 64 --osl 4 --json 2>$f.err | grep -o '"gpu":"[^"]*","new":[^,]*\|error.*'; done
cat board.err h100.err | sed "s|$ROOT/||"
printf 'op,device,dtype,m,n,k\ngemm,board,bfloat16,8,512,512\ngemm,h200,bfloat16,8,512,512\n' >ask.csv
cdmpp-predict --operators --cost-model ops.cdmpp --devices board.yaml ask.csv | grep -o '"device":"[^"]*","how"\|"new":[^,]*\|error.*'
echo "--- networks, plans and predictions: devices of the model, those of ours, and the own one"
for d in board v100 zen5-avx2; do cdmpp-replay -q --network matmul --cost-model "$M" --devices board.yaml --device $d --json | grep -o '"device":"[^"]*"' | head -n 1; done
cdmpp-partition -q --network matmul --cost-model "$M" --device-file board.yaml --devices cpu0 --as cpu0=zen4 --trials 2 --json 2>&1 | grep -o '"stand_in":"[a-z0-9-]*"\|error.*' | sort -u
cdmpp-replay --network matmul --cost-model "$M" --devices h100.yaml --device v100 2>&1 >/dev/null | grep h100.yaml
