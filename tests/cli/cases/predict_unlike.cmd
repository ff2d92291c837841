# programs of another type of numbers than the model was trained on are out of range, with the reason; the others are not
. "$T/lib.sh"
cdmpp-extract -q --tasks "$K" --out a.h5 "$HELD" || exit
cdmpp-train "$ROOT/configs/quickstart.yaml" --set data.files=a.h5 --set train.rounds=20 --quiet --out a.cdmpp >/dev/null
# of those without constants, which have a type of their own
cdmpp-extract -q --tasks "$K" --write-tasks | awk '
    /^  {"workload_key"/ { b = ""; in_task = 1 }
    in_task { b = b $0 "\n" }
    /^    \]}/ && in_task { in_task = 0; sub(/,\n$/, "\n", b); if (b !~ /[0-9][.][0-9]|[^\/]\/[^\/]|reinterpret/) all = all (all ? "," : "") b }
    END { printf "{\"schema\": \"cdmpp.tasks\", \"version\": 1, \"tasks\": [\n%s]}\n", all }' >tasks.json || exit
sed 's/float32/float16/g' tasks.json >half.json
cdmpp-predict --quiet --model a.cdmpp --tasks tasks.json "$HELD" >like.jsonl
cdmpp-predict --quiet --model a.cdmpp --tasks half.json "$HELD" >half.jsonl
grep -c '"reason":"[^"]*dtype' like.jsonl
grep -c '"out_of_range":true,"reason":"dtype float16' half.jsonl
grep -m 1 float16 half.jsonl | sed "s|$ROOT/||; s/\"\(latency_s\|low_s\|high_s\|rel_std\)\":[0-9.e-][0-9.e-]*/\"\1\":L/g"
echo "--- the same in words, as CSV, and of networks"
n=$(sed -n 's/.*"line":\([0-9]*\),.*dtype float16.*/\1/p' half.jsonl | head -n 1)
cdmpp-predict --quiet --model a.cdmpp --tasks half.json --explain "$HELD:$n" | sed -n '1s/.*, unlike/unlike/p'
cdmpp-predict --quiet --model a.cdmpp --tasks half.json --json --explain "$HELD:$n" | grep -o '"reason":"[^"]*"'
cdmpp-predict --quiet --model a.cdmpp --tasks tasks.json --explain "$HELD:$n" | head -n 1 | grep -c unlike
sed -n "${n}p" "$HELD" | cdmpp-predict --quiet --model a.cdmpp --tasks half.json --stream | grep -o '"reason":"[^"]*"'
export XDG_CACHE_HOME=$PWD/cache
replay() { cdmpp-replay -q --network lstm --input-size 4 --cost-model a.cdmpp --device zen5-avx512 --trials 2 "$@" 2>/dev/null; }
replay --csv | tr -d '\r' | sed -n 's/.*,error,unlike_share/error,unlike_share/p; s/.*,\("[a-z].* %"\),[0-9]*$/\1/p' | sed 's/[0-9][0-9]* %/N %/g'
replay --csv --ops | tr -d '\r' | grep -c '"operator kind\|"*operator kind\|range of features'
replay --html p.html >/dev/null; grep -o '"why":"[^"]*"' p.html | sed 's/[0-9][0-9]* %/N %/g'; grep -c '"reasons":\["' p.html
cdmpp-partition --network lstm --input-size 4 --cost-model a.cdmpp --as zen5-avx512 --devices cpu0,cpu1 --trials 2 --json 2>/dev/null | grep -o '"unlike_share":[0-9.]*' | sed 's/:.*/:S/'
echo "--- on a GPU float16 is answered as float32, and it is said what the GPU makes of it"
K1=$(sed -n 's/.*"workload_key":"\(.*\)","latency_s".*dtype float16.*/\1/p' half.jsonl | head -n 1)
printf '{"schema": "cdmpp.netgraph", "version": 1, "networks": [{"name": "n", "nodes": [{"name": "t", "kind": "task", "key": "%s"}]}]}\n' "$K1" >n.json
for d in a100 k80 zen5-avx512; do cdmpp-replay --graph n.json --tasks half.json --cost-model a.cdmpp --device $d --trials 2 2>&1 >/dev/null | grep 'as for float32'; done
cdmpp-replay --graph n.json --tasks tasks.json --cost-model a.cdmpp --device a100 --trials 2 2>&1 >/dev/null | grep -c 'as for float32'
echo "--- a model of an earlier version cannot tell it, and says so once"
cp "$ROOT/tests/golden/model_v3.cdmpp" old.cdmpp
cdmpp-predict --model old.cdmpp --tasks half.json --device zen5-avx512 "$HELD" 2>&1 >/dev/null | grep 'trained on'
sed -n "${n}p" "$HELD" | cdmpp-predict --model old.cdmpp --tasks half.json --device zen5-avx512 --stream 2>&1 >/dev/null | grep 'trained on'
cdmpp-replay --network squeezenet-1.1 --batch 1,2 --cost-model old.cdmpp --device zen5-avx512 --trials 2 2>&1 >/dev/null | grep 'trained on'
echo "--- unlike programs have wider intervals, not longer times: replay and partition answer alike"
a=$(replay --json | grep -o '"latency_s":[^,]*' | head -n 1 | cut -d : -f 2)
b=$(cdmpp-partition -q --json --network lstm --input-size 4 --cost-model a.cdmpp --as zen5-avx512 --devices cpu0 --trials 2 2>/dev/null | grep -o '"predicted_s":[^,]*' | head -n 1 | cut -d : -f 2)
# a launch takes 0.2 us
awk "BEGIN { print ($b > $a * 0.95 && $b < $a * 1.05 + 2e-5) ? \"alike\" : \"$a and $b\" }"
