# an iteration of training: tasks, and what has no definition
cdmpp-profile --list-tasks --training --model-name bert-tiny --input-size 16 --json >t.json
echo $?
python3 - <<'P'
import json
t = json.load(open("t.json"))
print(sum(x["weight"] for x in t["tasks"]) > 200, [(u["operator"], u["reason"]) for u in t["unsupported"]])
P
cdmpp-profile --list-ops --training --model-name gcn --input-size 8 | tail -n 1
