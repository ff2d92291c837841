# no answer is below what the described device can at best; what one command says of it, the others say too
. "$T/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
unset CDMPP_MODELS
cdmpp-extract -q --tasks "$K" --out a.h5 "$HELD" || exit
cdmpp-train "$ROOT/configs/quickstart.yaml" --set data.files=a.h5 --set train.rounds=20 --quiet --out a.cdmpp >/dev/null
echo "--- on a device of a hundredth of the peak all answers with operations are above the model's, in predict as in the stream; order and scores stay"
printf -- '- {name: zen5-avx512, kind: cpu, fp32_gflops: 1}\n' >slow.yaml
printf -- '- {name: zen5-avx512, kind: cpu}\n' >none.yaml # in the place of ours, and says nothing
number() { sed -n "s/.*\"$1\":\([0-9.e+-]*\).*/\1/p"; }
for d in slow none; do
    cdmpp-predict -q --model a.cdmpp --tasks "$K" --devices $d.yaml "$HELD" >$d.jsonl
    cdmpp-predict -q --model a.cdmpp --tasks "$K" --devices $d.yaml --stream <"$HELD" >$d.stream
    number latency_s <$d.jsonl >$d.txt; number latency_s <$d.stream | cmp - $d.txt && echo "$d: the stream answers the same"
done
paste slow.txt none.txt | awk '$1 < $2 { bad++ } $1 > $2 { up++ } END { print bad + 0 " below, " (up > 40 ? "many" : up + 0) " above" }'
number score <slow.stream >a.txt; number score <none.stream | cmp - a.txt && echo "the same scores"
grep -c 'peak of the device' none.jsonl
paste slow.txt none.txt | awk '$1 > $2 { print NR }' >raised.txt
grep -n 'peak of the device' slow.jsonl | cut -d : -f 1 | cmp - raised.txt && echo "each that was raised says so"
echo "--- the interval of a network of one operator is the operator's, and a launch; types that the model has not seen"
cdmpp-extract -q --tasks "$K" --write-tasks | awk '
    /^  {"workload_key"/ { b = ""; in_task = 1 }
    in_task { b = b $0 "\n" }
    /^    \]}/ && in_task { in_task = 0; sub(/,\n$/, "\n", b); if (b !~ /[0-9][.][0-9]|[^\/]\/[^\/]|reinterpret/) all = all (all ? "," : "") b }
    END { printf "{\"schema\": \"cdmpp.tasks\", \"version\": 1, \"tasks\": [\n%s]}\n", all }' >tasks.json || exit
key=$(sed -n 's/^  {"workload_key": "\(.*\)",\{0,1\}$/\1/p' tasks.json | head -n 1)
printf '{"schema": "cdmpp.netgraph", "version": 1, "networks": [{"name": "n", "nodes": [{"name": "t", "kind": "task", "key": "%s"}]}]}\n' "$key" >n.json
for d in zen5-avx512 zen4 a100; do
    cdmpp-replay -q --json --ops --graph n.json --tasks tasks.json --cost-model a.cdmpp --device $d --trials 2 2>/dev/null | grep -o '"\(low\|high\)_s":[^,]*' | cut -d : -f 2 | tr '\n' ' ' |
        awk -v d=$d '{ print d, ($1 > $3 - 1e-9 && $1 < $3 + 5e-6 && $2 > $4 - 1e-9 && $2 < $4 + 5e-6 && $3 < $4) ? "the same" : $0 }'
done
for type in bfloat16 float64 int8; do
    sed "s/float32/$type/g" tasks.json >type.json
    for d in zen5-avx512 a100 k80; do cdmpp-replay --graph n.json --tasks type.json --cost-model a.cdmpp --device $d --trials 2 2>&1 >/dev/null | grep 'as for float32'; done
done
echo "--- cores: a model of one core answers for one, which is said; a number that the target names changes nothing, which is a warning"
cores() { cdmpp-replay --graph n.json --tasks tasks.json --cost-model a.cdmpp --device zen5-avx512 --trials 2 "$@" 2>&1 >/dev/null | grep core; }
cores
cores --target 'llvm -model=zen5-avx512 -num-cores=7'
cores --target 'llvm -model=zen5-avx512 -num-cores=1'
echo "--- a trace of one layer that lost the file which says how many there are"
cat >x.csv <<'X'
op,target,_input_nodes,_args,meta,input_shapes,input_contiguous,contiguous,latency,fw_latency,bw_latency,acc_latency,output_shape,dtype,Name
placeholder,ids,{},,{},[],[],True,0,0,0,0,"(2, 16)",torch.int64,ids
call_module,net.wte,{ids: None},,{},"[[2, 16]]",[True],True,9,1,0,0,"(2, 16, 8)",torch.float32,wte
call_module,net.h.0.ln,{wte: None},,{},"[[2, 16, 8]]",[True],True,9,1,0,0,"(2, 16, 8)",torch.float32,layer_norm
call_module,net.h.0.dense,{layer_norm: None},,{},"[[2, 16, 8]]",[True],True,9,1,0,0,"(2, 16, 8)",torch.float32,dense
call_function,<built-in function add>,"{dense: None, wte: None}",,{},"[[2, 16, 8], [2, 16, 8]]","[True, True]",True,9,1,0,0,"(2, 16, 8)",torch.float32,add
output,output,{add: None},,{},"[[2, 16, 8]]",[True],True,0,0,0,0,"(2, 16, 8)",torch.float32,output
X
printf '{"num_layer": 3}\n' >x.json
for n in 1 2; do cdmpp-replay --graph x.csv --replay-given --csv -q 2>/dev/null | tr -d '\r' | cut -d , -f 1-4 | sed 1d; cdmpp-replay --graph x.csv --replay-given --device v100 2>&1 >/dev/null | grep layer; rm -f x.json; done
