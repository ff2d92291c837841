#!/usr/bin/env python3
"""How far tasks without a record of their own are from the best that was measured of them.

    own_candidates.py unseen SET.TASKS.JSON RECORDS TASKS.JSON MODEL-INFO.JSON >GRAPH   tasks that a model was not trained on
    own_candidates.py donors SET.TASKS.JSON RECORDS TASKS.JSON LOG >GRAPH               tasks whose loops another task has; its steps to LOG
    own_candidates.py table NAME=ANSWERS.JSON[,ANSWERS.JSON...]...                      answers of cdmpp-replay --json, as Markdown

A graph has a network of one program for each task. SET.TASKS.JSON: cdmpp-extract --write-tasks. TASKS.JSON: the set's, which names each
task's operator. MODEL-INFO.JSON: cdmpp-predict --info --json."""
import hashlib, json, math, sys
import roller_networks as r

def networks(layer, best, keys):
    net = lambda k: {"name": layer[k], "device": "v100", "measured_s": best[k],
                     "nodes": [{"name": "program", "op": json.loads(layer[k])[0], "kind": "task", "key": k}]}
    # Of two forms of a layer, with a sum and without, the name is the same.
    named = {}
    for k in keys:
        layer[k] += " " * named.setdefault(layer[k], 0)
        named[layer[k].rstrip()] += 1
    json.dump({"schema": "cdmpp.netgraph", "version": 1, "networks": [net(k) for k in keys]}, sys.stdout)

def unseen(set_tasks, records, tasks, info):
    trained = set(json.load(open(info))["best"]["tasks"])
    known = {t["workload_key"]: () for t in json.load(open(set_tasks))["tasks"]}
    best = {k: v[0] for k, v in sorted(r.fastest(records, known).items())}
    layer = {t["workload_key"]: t["layer"] for t in json.load(open(tasks))}
    networks(layer, best, [k for k in best if hashlib.sha256((k + "\nv100").encode()).hexdigest()[:16] not in trained])

def donors(set_tasks, records, tasks, log):
    tasks_of_set = json.load(open(set_tasks))["tasks"]
    known, chosen = r.donors(tasks_of_set, records), []
    best = {k: record["r"][0][0] for _, k, record, _ in known}
    with open(log, "w") as f:
        for t in tasks_of_set:
            key = t["workload_key"]
            found = key in best and r.schedule(t, [d for d in known if d[1] != key])
            if found:
                chosen.append(key)
                f.write(json.dumps(r.under(found, key)) + "\n")
    networks({t["workload_key"]: t["layer"] for t in json.load(open(tasks))}, best, chosen)

def table(*sets):
    print("| tasks | operator | n | median | mean (geometric) | least to most |\n| --- | --- | --- | --- | --- | --- |")
    for name, answers in (a.split("=", 1) for a in sets):
        kinds = {}
        for path in answers.split(","):
            for layer, v in json.load(open(path)).items():
                if "latency_s" in v:
                    kinds.setdefault(json.loads(layer)[0].replace("_layer", ""), []).append(v["latency_s"] / v["measured_s"])
        for kind, v in sorted(kinds.items()):
            v.sort()
            middle = (v[(len(v) - 1) // 2] + v[len(v) // 2]) / 2
            print("| %s | %s | %d | %.2f | %.2f | %.2f to %.2f |" % (name, kind, len(v), middle, math.exp(sum(map(math.log, v)) / len(v)), v[0], v[-1]))

{"unseen": unseen, "donors": donors, "table": table}[sys.argv[1]](*sys.argv[2:])
