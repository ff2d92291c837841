# Options, columns and files of --llm: what is asked is answered, and what cannot be is refused; nothing is dropped without a word.
. "$T/lib.sh"
export CDMPP_SERVING="$PWD/serving.yaml"
S=$ROOT/examples/serving
cat >serving.yaml <<YAML
- {stack: vllm, tokens: 2048, sequences: 64, memory_share: 0.9, reserve_gb: 3, between_s: 2e-6, step_s: 1e-4, spread_tpot: 0.1, spread_ttft: 0.2}
YAML
cdmpp-train "$S/operators.yaml" --quiet --set data.files="[$S/operators.csv]" --set operators.rounds=5 --set device.file="$ROOT/configs/devices.yaml" --out ops.cdmpp >/dev/null
cp "$S/operators.csv" .
ask() { cdmpp-replay --markdown --llm "${MODEL:-$S/config.json}" --cost-model ops.cdmpp --devices "$ROOT/configs/devices.yaml" --measured operators.csv "$@"; }
show() { grep -o "\"\($1\)\":[^,}]*" | sort | uniq -c | sed 's/^ *//'; }
sed 's/"torch_dtype"/"quantization_config": {"quant_method": "compressed-tensors"}, "torch_dtype"/' "$S/config.json" >quantised.json
MODEL=quantised.json ask --gpu h100
echo "unknown types: $?"
MODEL=quantised.json ask --gpu h100 --dtype fp8 >out.txt
echo "known types: $?"
# what config.json does not say is told; what nobody can know is refused
sed '/head_dim/d; s/"num_hidden_layers"/"max_position_embeddings": 512, "num_hidden_layers"/' "$S/config.json" >short.json
MODEL=short.json ask --gpu h100 --isl 500 --osl 16 --concurrency 1,2 --json | show 'notes\|isl' | cut -c 1-90
sed '/torch_dtype/d' "$S/config.json" >untyped.json
MODEL=untyped.json ask --gpu h100 >out.txt
echo "no dtype: $?"
{ echo '{"model_type": "llava", "text_config":' && cat "$S/config.json" && echo '}'; } >llava.json
MODEL=llava.json ask --gpu h100 >out.txt
echo "text part: $?"
for bad in '--isl 100.5' '--osl 3.5' '--engines 1.5' '--decode-tp 1.5'; do
    # shellcheck disable=SC2086 # options
    ask --gpu h100 $bad
    echo "fraction: $?"
done
ask --gpu h100 --stack vllm-nightly
echo "no version: $?"
ask --gpu h100 --stack vllm-v0.24.0 --json | show stack
ask --gpu h100 --engines 8 --concurrency 16 --json | show 'engines\|workers\|gpus'
# a GPU without bfloat16 serves in float16; who asks for bfloat16 there, for a cache of weights, or for engines that are not there, is refused
ask --gpu v100 --json | show 'dtype\|other_dtype'
echo "no bfloat16: $?"
ask --gpu v100 --dtype bfloat16
echo "no bfloat16: $?"
# no GPU of the vendor was trained on: it is told, and for each operator
ask --gpu mi300x --json | show 'new'
# a GPU with measured rows is known by them
sed 's/,h100,/,a10,/' "$S/operators.csv" >a10.csv
cdmpp-replay --markdown --llm "$S/config.json" --cost-model ops.cdmpp --devices "$ROOT/configs/devices.yaml" --measured a10.csv --gpu a10 >out.txt
echo "measured: $?"
# rows take turns: each GPU is told of once
printf 'gpu,osl\na10,5\nv100,5\na10,6\nv100,6\n' >turns.csv
ask --runs turns.csv --isl 16 >out.txt
echo "turns: $?"
ask --gpu zen4
echo "a CPU: $?"
for bad in '--kv-dtype int4_wo' '--kv-dtype fp8_block' '--decode-tp 2' '--decode-max-sequences 4'; do
    # shellcheck disable=SC2086 # options
    ask --gpu h100 $bad
    echo "not read: $?"
done
# prompts about as long as a step wait until nothing decodes: it is told; divided they do not
for how in whole chunked; do ask --gpu h100 --isl 512 --osl 64 --concurrency 8 --max-tokens 514 --prompts $how >out.txt; done
ask --gpu h100 --isl 512 --osl 64 --concurrency 4,8 --max-tokens 514 --prompts whole --sweep --tp 1 | grep 'wait for room'
ask --gpu h100 --isl 512 --osl 64 --concurrency 1,8 --max-tokens 514 --prompts whole --sweep --tp 1 --json | grep -o '"crowded":[a-z0-9]*' | sort | uniq -c
ask --gpu h100 --isl 512 --osl 64 --concurrency 8 --max-tokens 514 --length-spread 0.001 --prompts whole 2>&1 >out.txt | grep -o '512 in the mean'
# a kernel that is named answers in place of the one that the library takes, in a table of runs, too
awk -F, -v OFS=, 'NR == 1 { $3 = $3 ",kernel"; print; next } $1 != "gemm" { $3 = $3 ","; print; next } { v = $NF; $3 = "vllm-1,Fast_a"; print; $NF = 3 * v; $3 = "vllm-1,Slow_b"; print }' "$S/operators.csv" >kernels.csv
named() { cdmpp-replay --llm "$S/config.json" --cost-model ops.cdmpp --devices "$ROOT/configs/devices.yaml" --measured kernels.csv --gpu h100 --json "$@"; }
named | grep -o '"name":"qkv".*' | grep -o '"total_s":[^,]*' | head -1 >fast.txt
named --kernels gemm=slow >slow.json
grep -o '"name":"qkv".*' slow.json | grep -o '"total_s":[^,]*' | head -1 | paste -d : fast.txt - | awk -F : '{ printf "slower by %.3f\n", $4 / $2 }'
show kernels <slow.json
named --kernels gemm=none
echo "no such kernel: $?"
printf '%s\n' '{"cmd":"hello"}' | cdmpp-replay --llm "$S/config.json" --cost-model ops.cdmpp --devices "$ROOT/configs/devices.yaml" --measured kernels.csv --gpu h100 --kernels gemm=slow --stream | grep -o '"kernels":[^,]*'
printf 'id,gpu,kernels\na,h100,gemm=slow\nb,h100,gemm\n' >which.csv
named --runs which.csv | show 'kernels\|refused'
for bad in moe moe= x=slow gemm=a,gemm=b; do
    named --kernels "$bad"
    echo "not read: $?"
done
for bad in '--batch 7' '--trials 9' '--network resnet50' '--workers 2' '--list-networks' '--csv'; do
    # shellcheck disable=SC2086 # options
    ask --gpu h100 $bad
    echo "not read: $?"
done
cdmpp-replay --network resnet50 --tp 2
echo "no --llm: $?"
printf 'id,gpu,tp,rate\na,h100,,2\nb,h100,1,\n' >runs.csv
ask --runs runs.csv --tp 2 --concurrency 4 --json | show 'tp\|rate\|concurrency'
ask --runs runs.csv --tp 1,2
echo "lists: $?"
printf 'id,gpu,tp,stack\na,h100,1,\nb,h9000,1,\nc,h100,x,\nd,h100,2,other\ne,h100,2,\n' >rows.csv
ask --runs rows.csv --json >out.json
echo "bad rows: $?"
show 'id\|refused' <out.json
# what is measured and cannot be used is named, and the rest answers
mkdir -p folder/h100
cp "$S/operators.csv" folder/h100/operators.csv
echo 'gemm,h100,vllm-1,x,2,3' >>folder/h100/operators.csv
echo damaged >folder/h100/gemm.h5
cdmpp-replay --markdown --llm "$S/config.json" --cost-model ops.cdmpp --devices "$ROOT/configs/devices.yaml" --measured folder --gpu h100 >out.txt
echo "bad lines: $?"
grep -c measured out.txt
printf 'device,price_per_hour\nH100,-1\n' >prices.csv
ask --gpu h100 --sweep --tp 1 --concurrency 1 --prices prices.csv
echo "below 0: $?"
printf 'device,price_per_hour\nA100,1\n' >prices.csv
ask --gpu h100 --sweep --tp 1,2 --concurrency 1,2 --prices prices.csv >out.txt
echo "no price: $?"
ask --gpu h100 --sweep --tp 1,3 --concurrency 1 >out.txt
echo "sweep: $?"
ask --gpu h100 --tp 1,3 --concurrency 1 >out.txt
echo "answers: $?"
cdmpp-replay --help=all | tr -s ' \n' ' ' | grep -c 'refused some configurations, but not with --sweep'
printf 'isl,osl\n100,4\n30,8\n0,3\n' >load.csv
ask --gpu h100 --load load.csv --concurrency 2 --json >out.json 2>err.txt
echo "exit $?"
cat err.txt
grep -o '"isl":[0-9.]*\|"duration_s":[0-9]' out.json
ask --gpu h100 --load load.csv --concurrency 2 2>/dev/null | grep 'requests:\|in the mean' | sed 's/after .*/after T/'
printf 'isl,osl,at_s\n100,4,0\n30,8,2.5\n' >load.csv
ask --gpu h100 --load load.csv | grep 'requests:\|as given' | sed 's/after 2[.].* s/after 2 s and more/; s/TTFT.*//; s/given |.*/given/'
# a part of a trace begins with its first request
ask --gpu h100 --load load.csv >begin.txt
printf 'isl,osl,at_s\n30,8,86402.5\n100,4,86400\n' >later.csv
ask --gpu h100 --load later.csv | cmp - begin.txt && echo same
for bad in '--concurrency 2' '--rate 1' '--isl 3' '--requests 3' '--runs load.csv'; do
    # shellcheck disable=SC2086 # options
    ask --gpu h100 --load load.csv $bad
    echo "exit $?"
done
# a line that is cut short is told and left out, of a load as of runs
printf 'isl,osl\n100,4\n30\n30,8\n' >cut.csv
ask --gpu h100 --load cut.csv --concurrency 2 --json 2>cut.err | grep -o '"isl":[0-9.]*'
cat cut.err
printf 'isl,osl\n16\n16,4\n' >cut.csv
ask --gpu h100 --runs cut.csv --json 2>cut.err | show isl
cat cut.err
# what people forget is told: more GPUs than a machine has, tables of another library, requests that come too fast, a checkpoint in MXFP4 that says no other type
ask --gpu h100 --pp 2 --dp 8 >out.txt
echo "wide: $?"
ask --gpu h100 --node-gpus 1 --tp 2 >out.txt
echo "no rate: $?"
ask --gpu h100 --node-gpus 2 --tp 4 --node-gbs 50 --dp 2 >out.txt
echo "a multiple: $?"
ask --gpu h100 --stack vllm-9.9 >out.txt
ask --gpu h100 --rate 100000 --isl 16 --osl 4 --requests 2000 >out.txt
echo "overload: $?"
sed 's/"torch_dtype"[^,]*,/"num_local_experts": 4, "num_experts_per_tok": 2, "quantization_config": {"quant_method": "mxfp4"},/; s/"llama"/"gpt_oss"/' "$S/config.json" >oss.json
MODEL=oss.json ask --gpu h100 --json | show 'dtype_taken\|experts_dtype\|attention_dtype'
# engines of both kinds are said; the folder of a checkpoint stands for its config.json; without an answer there is no interval
ask --gpu h100 --decode-workers 2 --concurrency 4 | grep 'engines'
ask --gpu h100 --decode-workers 2 --concurrency 4 --json | show 'decode_tp\|decode_ep'
mkdir checkpoint && cp "$S/config.json" checkpoint/
MODEL=checkpoint ask --gpu h100 --json | show model_type
MODEL=. ask --gpu h100
echo "no config.json: $?"
ask --gpu h100 --tp 3,5 | grep '^| GPU'
# types that contradict each other are told with both; null is as if the field were not there
sed 's/"torch_dtype"/"dtype": "float16", "torch_dtype"/' "$S/config.json" >two.json
MODEL=two.json ask --gpu h100 --json | show other_dtype
sed 's/"torch_dtype"/"dtype": null, "sliding_window": null, "rope_scaling": null, "quantization_config": null, "torch_dtype"/' "$S/config.json" >null.json
ask --gpu h100 >out.txt; MODEL=null.json ask --gpu h100 | cmp - out.txt && echo same
# warnings stand before results: whose tables stand in, rows that are refused
ask --gpu h100 --stack vllm-9.9 2>&1 | grep -n 'stand for it\|^| TTFT\|TTFT' | cut -c 1-60 | head -n 2
ask --gpu h100 --stack vllm-9.9 --sweep --tp 1 --concurrency 1 2>&1 | grep -n 'stand for it'
echo '{"decode":[3]}' | ask --gpu h100 --stack vllm-9.9 --stream 2>&1 | grep -o 'stand for it\|"line":1'
{ echo 'gpu,tp'; for i in 1 2 3 4 5 6 7 8 9 10 11; do echo "h9000,$i"; done; echo h100,x; echo h100,1; } >many.csv
ask --runs many.csv --stack vllm-9.9 2>&1 | sed 's/^\(cdmpp.*\)/\1/; /^cdmpp/!s/.*/results/' | uniq | head -n 12
# all numbers that an own description lacks are told at once
printf -- '- name: mine\n  kind: gpu\n  l2_kb: 50000\n  fp4_tflops: 0\n' >mine.yaml
printf 'op,device,m,n,k\ngemm,mine,4,512,512\n' >mine.csv
cdmpp-predict --operators --cost-model ops.cdmpp --devices mine.yaml mine.csv | grep -o '"error".*'
cdmpp-replay --llm "$S/config.json" --cost-model ops.cdmpp --devices mine.yaml --gpu mine --tp 2
# fewer requests than are asked to be in flight: no more of them are, and it is told; what has no effect is refused
ask --gpu h100 --concurrency 1000 --requests 10 --osl 4 --json | show 'requests\|idle_schedulers'
for bad in '--experts-dtype fp8' '--node-gbs 50'; do
    # shellcheck disable=SC2086 # options
    ask --gpu h100 $bad
    echo "no effect: $?"
done
# the file beside config.json says the types
echo '{"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}' >checkpoint/hf_quant_config.json
MODEL=checkpoint ask --gpu h100 --json | grep -o '"experts_dtype":"[^"]*"\|"kv_dtype":"[^"]*"' | sort -u
