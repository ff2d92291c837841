# Questions about operators of language models on a pipe, and what goes with --stream --operators.
. "$T/lib.sh"
awk -f "$T/llm_rows.awk" >all.csv
sed -n '2,40p' all.csv | awk -F, -v OFS=, '{ $NF *= 1 + 0.01 * (NR % 10); print }' >>all.csv
printf 'data: {kind: llm_operators, files: [all.csv]}\noperators: {rounds: 20, eta: 0.3, max_depth: 4}\n' >llm.yaml
cdmpp-train llm.yaml --quiet --out llm.cdmpp --set device.file="$ROOT/configs/devices.yaml" >/dev/null
cat >ask.jsonl <<'J'
{"id":1,"op":"gemm","stack":"vllm-1","m":16,"n":512,"k":512}
{"id":"two","device":"l40s","op":"gemm","dtype":"fp8","stack":"sglang-3","m":16,"n":512,"k":512}
{"id":3,"operators":[{"op":"gemm","stack":"vllm-1","m":3,"n":512,"k":512},{"op":"gem"},{"op":"gemm","device":"a100-sxm4-80gb","dtype":"fp8","m":1,"n":1,"k":1}]}
{"id":4,"op":"gemm","dtyp":"fp8","m":1,"n":1,"k":1}
{"id":5
{"cmd":"stats"}
J
s() { cdmpp-predict --stream --operators --cost-model llm.cdmpp --devices "$ROOT/configs/devices.yaml" --measured all.csv --device h100 "$@"; }
s -v <ask.jsonl >out.jsonl; echo "status $?"
sed 's/"\(latency_s\|low_s\|high_s\|estimate_s\|bound_s\)":[0-9][0-9.e+-]*/"\1":T/g' out.jsonl
# the answers of tables
printf 'op,stack,m,n,k\ngemm,vllm-1,16,512,512\n' >q.csv
cdmpp-predict --operators --cost-model llm.cdmpp --devices "$ROOT/configs/devices.yaml" --measured all.csv --device h100 q.csv | sed 's/.*"operator"/"operator"/' >table.txt
head -n 1 out.jsonl | sed 's/.*"operator"/"operator"/' | cmp - table.txt && echo same
# who waits for each answer gets it
mkfifo to from; s <to >from & exec 3>to 4<from; echo '{"op":"gemm","m":1,"n":64,"k":64}' >&3; read -r line <&4; echo "$line" | cut -c 1-40; exec 3>&-; wait $!; echo "status $?"
s --eval </dev/null; s --format csv </dev/null; s --batch 3 </dev/null; s --strict </dev/null
cdmpp-predict --stream --operators --cost-model "$ROOT/tests/golden/model_v1.cdmpp" </dev/null; echo "status $?"
# without a kernel the measured ones answer: the nearest, of those alike the fastest; a library without a version is each version of it
printf 'op,device,stack,kernel,m,n,k,latency_s\ngemm,h100,vllm-1,slow,40,700,300,3e-5\ngemm,h100,vllm-1,fast,40,700,300,2e-5\ngemm,h100,vllm-1,slow,80,700,300,9e-5\ngemm,h100,vllm-2,fast,40,700,300,1e-5\n' >kernels.csv
cat >kernels.jsonl <<'J'
{"op":"gemm","stack":"vllm-1","m":40,"n":700,"k":300}
{"op":"gemm","stack":"vllm-1","kernel":"slow","m":40,"n":700,"k":300}
{"op":"gemm","stack":"vllm-1","m":80,"n":700,"k":300}
{"op":"gemm","stack":"vllm","m":40,"n":700,"k":300}
{"op":"gemm","stack":"vllm","m":56,"n":700,"k":300}
{"op":"gemm","stack":"vllm-9","m":40,"n":700,"k":300}
{"op":"gemm","stack":"vllm-1","m":7000,"n":700,"k":300}
J
k() { cdmpp-predict "$@" --operators --cost-model llm.cdmpp --devices "$ROOT/configs/devices.yaml" --measured kernels.csv --device h100; }
k --stream <kernels.jsonl >pipe.txt
sed 's/"l[a-z]*":[0-9]*,//; s/"low_s.*//; /measured/!s/:[0-9.e-]*,$/:T/' pipe.txt
{ echo 'op,stack,kernel,m,n,k'; sed 's/"[a-z]*"://g; s/[{}"]//g; /slow/!s/,\([0-9]*\),700/,,\1,700/' kernels.jsonl; } >kernels_q.csv
k kernels_q.csv | sed 's/.*"operator"/"operator"/' >table.txt
sed 's/.*"operator"/"operator"/' pipe.txt | cmp - table.txt && echo same
