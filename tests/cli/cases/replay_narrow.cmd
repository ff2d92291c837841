# Matrix products in types of 16 and 8 bits of a network on a GPU: with a model of operators of language models they take its times, without one they are answered as float32, which is said.
. "$T/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
unset CDMPP_MODELS
cdmpp-extract -q --tasks "$K" --out a.h5 "$HELD" || exit
cdmpp-train "$ROOT/configs/quickstart.yaml" --set data.files=a.h5 --set train.rounds=20 --quiet --out a.cdmpp >/dev/null
awk -f "$T/llm_rows.awk" >llm.csv
printf 'data: {kind: llm_operators, files: [llm.csv]}\noperators: {rounds: 20, eta: 0.3, max_depth: 4}\n' >llm.yaml
cdmpp-train llm.yaml --quiet --out llm.cdmpp --set device.file="$ROOT/configs/devices.yaml" >/dev/null
cat >half.json <<JSON
{"schema": "cdmpp.tasks", "version": 1, "tasks": [
  {"workload_key": "[\"product\"]", "target": "llvm", "ops": [{"name": "A", "shape": [64, 4096], "dtype": "bfloat16"}, {"name": "B", "shape": [1024, 4096], "dtype": "bfloat16"},
   {"name": "C", "axis": [["i", 0, 64], ["j", 0, 1024]], "reduce_axis": [["k", 0, 4096]], "reduce": "sum", "body": ["A[i, k]*B[j, k]"]}], "args": ["A", "B", "C"]}]}
JSON
sed 's/bfloat16/float32/g' half.json >single.json
printf '{"schema": "cdmpp.netgraph", "version": 1, "networks": [{"name": "n", "nodes": [{"name": "t", "kind": "task", "key": "[\\"product\\"]"}, {"name": "u", "kind": "task", "key": "[\\"product\\"]", "after": ["t"]}]}]}\n' >n.json
replay() { cdmpp-replay --graph n.json --devices "$ROOT/configs/devices.yaml" --trials 2 --json --ops "$@" >out.json 2>err.txt; s=$?; grep -c 'as for float32' err.txt; grep -o '"source":"[a-z]*"' out.json | uniq -c | sed 's/^ *//'; return $s; }
echo "--- without it"
replay --device h100 --tasks half.json --cost-model a.cdmpp
echo "--- with it: the operator's time, in nodes alike"
replay --device h100 --tasks half.json --cost-model a.cdmpp --cost-model llm.cdmpp
printf 'op,device,dtype,m,n,k\ngemm,h100,bfloat16,64,1024,4096\n' >q.csv
cdmpp-predict --operators --cost-model llm.cdmpp --devices "$ROOT/configs/devices.yaml" q.csv 2>/dev/null | grep -o '"latency_s":[0-9.e-]*' >want.txt
grep -o '"seconds":[0-9.e-]*' out.json | cut -d : -f 2 | paste - want.txt | head -n 1 | awk -F '[\t:]' '{ print ($1 > $3 * 0.999999 && $1 < $3 * 1.000001) ? "the same" : $0 }'
echo "--- float16 was not measured: it is answered as bfloat16, which is told and no reason to doubt"
sed 's/bfloat16/float16/g' half.json >f16.json
replay --device h100 --tasks f16.json --cost-model a.cdmpp --cost-model llm.cdmpp
grep -o '"alike":"[a-z0-9]*"\|"reason":"[^"]*"\|"unlike_share":[^,]*' out.json | uniq; grep ' as in ' err.txt
echo "--- float32 and processors stay with the model of programs"
replay --device h100 --tasks single.json --cost-model a.cdmpp --cost-model llm.cdmpp
replay --device zen5-avx512 --tasks half.json --cost-model a.cdmpp --cost-model llm.cdmpp
echo "--- 8 bits: products between quantisations and of whole numbers; the convolution is not"
cdmpp-replay --network "$ROOT/tests/profiler/data/quantised.onnx" --device h100 --devices "$ROOT/configs/devices.yaml" --trials 2 --ops --cost-model a.cdmpp --cost-model llm.cdmpp 2>/dev/null |
    grep -o -e 'library  *[^ ]*' -e 'model  *ConvInteger' | sed 's/  */ /g' | sort | uniq
echo "--- what is said of 8 bits: on a processor their answer is no float32's; on a GPU products have theirs"
told() { cdmpp-replay --network "$ROOT/tests/profiler/data/quantised.onnx" --devices "$ROOT/configs/devices.yaml" --trials 2 "$@" 2>&1 >/dev/null | grep -e ' bits' -e ' is of ' | grep -v unlike | sed 's/: [0-9]* %/: N %/'; }
told --device zen5-avx512 --cost-model a.cdmpp
told --device zen5-avx512 --cost-model a.cdmpp --cost-model llm.cdmpp | wc -l
told --device h100 --cost-model a.cdmpp
told --device h100 --cost-model a.cdmpp --cost-model llm.cdmpp
echo "--- alone it is no model of programs, and other commands do not take it"
cdmpp-replay --network lstm --input-size 4 --cost-model llm.cdmpp --device h100 2>&1 | sed 's/default-[0-9]*/default-N/' | head -n 2 | cut -c 1-200
cdmpp-partition --network lstm --input-size 4 --cost-model a.cdmpp --cost-model llm.cdmpp --as zen5-avx512 --devices cpu0 2>&1 | head -n 3
