# What no training row has (a type, another vendor's GPU): said in every form with its share of the time, without an interval where no experiment tells, and not ranked.
. "$T/lib.sh"
S=$ROOT/examples/serving
cat >serving.yaml <<YAML
- {stack: vllm, tokens: 2048, sequences: 64, memory_share: 0.9, reserve_gb: 3, between_s: 2e-6, step_s: 1e-4, spread_tpot: 0.1, spread_ttft: 0.2}
YAML
export CDMPP_SERVING="$PWD/serving.yaml"
cdmpp-train "$S/operators.yaml" --quiet --set data.files="[$S/operators.csv]" --set operators.rounds=5 --set device.file="$ROOT/configs/devices.yaml" --out ops.cdmpp >/dev/null
cp "$S/config.json" "$ROOT/configs/devices.yaml" .
kept='"new":[^,]*\|"[a-z_]*":null'
cat >ask.csv <<CSV
op,device,stack,dtype,m,n,k
gemm,h100,vllm-1,bfloat16,64,520,256
gemm,h100,vllm-1,int8,64,520,256
gemm,h100,vllm-1,fp8,4096,8192,4096
gemm,mi300x,vllm-1,bfloat16,64,520,256
CSV
cdmpp-predict --operators --cost-model ops.cdmpp --devices devices.yaml ask.csv 2>err.txt | grep -o "\"line\":.\|$kept"
sed 's/[0-9.]* %/P %/g' err.txt
echo '{"op":"gemm","device":"h100","stack":"vllm-1","dtype":"fp8","m":64,"n":520,"k":256}' | cdmpp-predict --stream --operators --cost-model ops.cdmpp --devices devices.yaml | grep -o "$kept"
ask="cdmpp-replay --llm config.json --cost-model ops.cdmpp --devices devices.yaml --isl 256 --osl 2"
$ask --gpu h100 --dtype fp8 2>err.txt | sed -n 's/[0-9.]* %/P %/g; /^no[t ]/p'
sed 's/[0-9.]* %/P %/g' err.txt
$ask --gpu h100 --dtype fp8 --json 2>/dev/null | grep -o '"ttft_low_s":[^,]*\|"new_share":{[^:]*\|"no_interval_share"'
$ask --gpu h100,mi300x --dtype fp8 --sweep --tp 1 --concurrency 1,2 2>/dev/null | sed -n 1,3p
$ask --gpu h100,mi300x --dtype fp8 --sweep --tp 1 --concurrency 1,2 --json 2>/dev/null | grep -o '"not_ranked":[0-9]*\|"most_tokens_s_gpu":null\|"front":[a-z]*\|"ranked":[a-z]*'
