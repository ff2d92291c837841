# an iteration of training: all of it in tasks; an operator without a gradient is named
cdmpp-profile --list-tasks --training --network bert-tiny --input-size 16 --json >t.json
echo $?
python3 - <<'P'
import json
t = json.load(open("t.json"))
print(sum(x["weight"] for x in t["tasks"]) > 200, [(u["operator"], u["reason"]) for u in t["unsupported"]])
P
cdmpp-profile --list-ops --training --network gcn --input-size 8 | tail -n 1
cdmpp-profile --list-tasks --training --model-name "$ROOT/tests/profiler/data/no_gradient.onnx" --model-source onnx 2>&1 | grep '^unsupported'
