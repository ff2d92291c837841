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
grep -m 1 float16 half.jsonl | sed "s|$ROOT/||; s/\"\(latency_s\|low_s\|high_s\|rel_std\)\":[0-9.e-]*/\"\1\":L/g"
