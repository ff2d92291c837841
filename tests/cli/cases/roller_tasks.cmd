# Roller's networks make the programs that TVM printed when it ran them (keys of its log); schedules given to tasks with more stages
python3 $ROOT/scripts/roller_onnx.py n
for n in resnet_50 nasnet_large lstm; do
    cdmpp-profile --list-tasks --model-source onnx --network n/$n.onnx --target cuda --json >$n.json; echo $n $?
done
python3 - <<'P'
import json, os, sys
log = ["218090bc617f9a36fbabdf253ec28064", "e7fad0e110ebca7e7b9f8d0299b980b2", "48bf21517f99d84133091d72d525aaea", "ade210a9eedba301fba2c60a82893b17",
       "313850fa2e248d77d9c7b2ce95f9cbd1", "5dc9afa86396a3256ff992fe6a7b7d80", "64a844718849c3c8252ddc8dee51dae7", "51575466bc206f553257a4437a170999",
       "f09f3f33f76116d85452966717e745d5", "566f0cc9896c01687834993c79dcbe64", "36ff0aa0ec5d6fd444442311bcd339ac", "3458e75493bb4bb042e539b5ff4818fb"]
for n in ("resnet_50", "nasnet_large", "lstm"):
    t = json.load(open(n + ".json"))
    t = t.get("result", t)
    keys = {json.loads(x["workload_key"])[0] for x in t["tasks"]}
    print(n, sum(x["weight"] for x in t["tasks"]), "programs,", len(t["tasks"]), "tasks,", sum(k in keys for k in log), "of", len(log), "keys,", len(t["unsupported"]), "unsupported")

sys.path.insert(0, os.environ["ROOT"] + "/scripts")
import roller_networks as r
p, pad, conv, last = "p", ((8, 6), (), "None"), ((8, 4), (3,), "sum"), ((8, 4), (), "None")
alone, added = (p, pad, p, conv, last), (p, pad, p, conv, p, last)
print(r.extra(alone, alone), r.extra(alone, added), r.extra(added, added + (p, last)), r.extra((p,) + alone, (p, p) + alone), r.extra(added, alone), r.extra(alone, alone[:4]))
steps = [["CI", 1], ["SP", 3, 0, 8, [2], 1], ["FSP", 4, 0, 1, 1], ["CA", 3, 4, 1], ["CHR", 2, "shared", [3]], ["CA", 3, 4, 2], ["FU", 5, [0, 1]]]
print(r.moved(steps, [], alone) == steps)
print(r.moved(steps, [4, 5], (p, pad, p, conv, p, last, last)))
print(r.moved(steps, [0], (p,) + alone))
P
