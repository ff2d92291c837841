#!/usr/bin/env python3
"""groups_gpu.py WORK -- groups.py on WORK/v100.h5: tasks drawn one by one, then whole groups; 30 programs a task, trees only."""
import json, os, random, sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import figures, quick

def groups(logs):
    """Tasks that have records; `logs` names their files, ([HASH,SHAPES],cuda).json."""
    with open(logs) as f:
        there = {l.strip().split("/(")[1].split(",cuda)")[0] for l in f if "/(" in l}
    with open(os.path.join(os.environ["CDMPP_DATA"], "gpu-ansor/network_info/tasks.json")) as f:
        keys = sorted(k for k in {t["workload_key"] for t in json.load(f)} if k.replace(" ", "").replace('"', "") in there)
    found = {}
    for k in keys:
        found.setdefault(json.dumps(json.loads(k)[1:3]), []).append(k)
    return list(found.values())

def config(work, seed, units):
    """quickstart.yaml with a fifth of the units' tasks for the test, of a seventh for validation."""
    random.Random(seed).shuffle(units)
    cut, end = round(0.2 * len(units)), round(0.35 * len(units))
    with open(os.path.join(figures.ROOT, "configs/quickstart.yaml")) as f:
        text = f.read()
    lines = ["split:", "  kind: task"]
    for name, part in (("test_names", units[:cut]), ("valid_names", units[cut:end])):
        lines += ["  %s:" % name] + ["    - '%s'" % k for g in part for k in g]
    path = os.path.join(work, "groups.yaml")
    with open(path, "w") as f:
        f.write(text[:text.index("\nsplit:\n") + 1] + "\n".join(lines) + "\n\n" + text[text.index("\nmodel:\n") + 1:])
    return path

def train(work, seed, units):
    out = quick.sh(os.environ.get("B", "build/release") + "/cdmpp-train", config(work, seed, units), "--quiet", "--json", "-j", os.environ.get("JOBS", "1"),
                   "--set", "data.files=" + os.path.join(work, "v100.h5"), "--set", "data.devices=[v100]", "--set", "filter.max_per_task=30",
                   "--set", "split.seed=%d" % seed, "--out", os.path.join(work, "groups.cdmpp"))
    return json.loads(out)["result"]["metrics"]["test"]

if __name__ == "__main__":
    work, all_groups = sys.argv[1], groups(os.path.join(sys.argv[1], "logs.txt"))
    for kind, units in (("group", all_groups), ("task", [[k] for g in all_groups for k in g])):
        t = [train(work, s, list(units)) for s in quick.SEEDS]
        for key, factor, unit in (("mape", 100, "%"), ("spearman", 1, "")):
            v = [factor * x[key] for x in t]
            print("figure:%s-%s=%.4g,%s,%d,%d,%.3g" % (kind, key, figures.mean(v), unit, sum(x["n"] for x in t), len(v), figures.deviation(v)))
    print("figure:tasks=%d\nfigure:twins=%d" % (sum(map(len, all_groups)), sum(len(g) for g in all_groups if len(g) > 1)))
