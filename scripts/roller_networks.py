#!/usr/bin/env python3
"""Roller's networks with their measured times, and a schedule for each of their tasks that the V100 set has one for.

    roller_networks.py SET.TASKS.JSON RECORDS FOLDER

SET.TASKS.JSON: cdmpp-extract --write-tasks of the set. RECORDS: the set's V100 logs. FOLDER has NAME.graph.json (cdmpp-replay
--save-graph) and NAME.tasks.json (cdmpp-profile --list-tasks) of the networks of roller_onnx.py; roller.json, roller.log and
roller.txt are written there.

The set's operators are Roller's: convolutions with a sum of whole tensors where the networks have biases, no residual sums. A task
takes the steps of the fastest record of a task of the set with the same loops (extents, reductions, in order). Where it has
operators element by element more, they are inlined into the last one, as Ansor would; a convolution or product alone that
kept its sums in registers (CHW) gives its steps to one with operators behind it. Where nothing fits: no line, the replay draws."""
import json, os, sys

MEASURED = {"resnet_50": 110.4298e-3, "nasnet_large": 884.1145e-3, "lstm": 125.4462e-3}
PLACEHOLDER = "p"

def loops(task):
    """Of each stage: extents, reduction's extents and kind; placeholders are all alike."""
    out = []
    for o in task["ops"]:
        if "body" not in o:
            out.append(PLACEHOLDER)
        else:
            extents = lambda k: tuple(a[2] if isinstance(a, list) else a["extent"] for a in o.get(k, []))
            out.append((extents("axis"), extents("reduce_axis"), str(o.get("reduce"))))
    return tuple(out)

def fastest(folder, known):
    """Of each known task: seconds and record of its fastest line."""
    best = {}
    for root, _, names in os.walk(folder):
        for n in sorted(names):
            with open(os.path.join(root, n)) as f:
                for line in f:
                    if not line.strip():
                        continue
                    r = json.loads(line)
                    key = r["i"][0][0]
                    if r["r"][1] == 0 and key in known and (key not in best or r["r"][0][0] < best[key][0]):
                        best[key] = (r["r"][0][0], r)
    return best

def donors(tasks, folder):
    """Loops -> (key, record, steps), in two forms: as it is, and with an operator behind it in place of the cache write."""
    known = {t["workload_key"]: loops(t) for t in tasks}
    out = []
    for key, (_, r) in sorted(fastest(folder, known).items()):
        have, steps = known[key], r["i"][1][1]
        out.append((have, key, r, steps))
        # Ansor writes the cache before any split, so that no step counts from before it.
        if steps and steps[0][0] == "CHW" and steps[0][1] == len(have) - 1:
            out.append((have + ((have[-1][0], (), "None"),), key, r, renumbered(steps[1:], -1)))
    return out

def extra(have, want):
    """Stages of want that have lacks, where these are placeholders or element by element like the last one; else None."""
    if not have or not want or have[-1] != want[-1]:
        return None
    plain = (want[-1][0], (), "None")
    def walk(i, j):
        """From the end, so that what a stage reads stands right before it in both."""
        if j < 0:
            return [] if i < 0 else None
        if i >= 0 and have[i] == want[j]:
            rest = walk(i - 1, j - 1)
            if rest is not None:
                return rest
        if want[j] in (PLACEHOLDER, plain):
            rest = walk(i, j - 1)
            return None if rest is None else rest + [j]
        return None
    return walk(len(have) - 2, len(want) - 2)

def renumbered(steps, by):
    """Steps that stand `by` places later: FSP and FFSP name earlier splits by their places."""
    out = [list(s) for s in steps]
    for s in out:
        if s[0] == "FSP":
            s[3] += by
        elif s[0] == "FFSP":
            s[3] = [i + by for i in s[3]]
    return out

def moved(steps, more, want):
    """The steps, with stage numbers of the task that has these stages more; of them, those that compute are inlined first."""
    at = list(more)                      # where the added stages stand now, as further ones come in
    out = [["CI", j] for j in reversed(more) if want[j] != PLACEHOLDER]
    steps = renumbered(steps, len(out))
    def place(s):
        for a in at:
            s += s >= a
        return s
    for step in steps:
        step[1] = place(step[1])
        if step[0] == "CA":
            step[2] = place(step[2])
        elif step[0] == "CHR":
            step[3] = [place(s) for s in step[3]]
            at[:] = [a + (a > step[1]) for a in at]
        elif step[0] in ("CHW", "RF"):
            at[:] = [a + (a >= step[1]) for a in at]
        out.append(step)
    return out

def schedule(task, known):
    """The fastest donor: (seconds, how many stages it lacks, key, record, steps) or None."""
    want, best = loops(task), None
    for have, key, record, steps in known:
        more = extra(have, want)
        if more is not None and (best is None or record["r"][0][0] < best[0]):
            best = (record["r"][0][0], len(more), key, record, moved(steps, more, want))
    return best

def under(found, key):
    """That schedule as a record of this task."""
    r = json.loads(json.dumps(found[3]))
    r["i"][0][0], r["i"][1][1] = key, found[4]
    return r

def plain(task):
    """A ReLU as large, for what works on each element alone or only moves it; None for all others.

    Concatenations, padding, slices, splits: the set has no such program, a model of it calls them unlike all it knows. ReLUs it
    has 23; like these they read each element once and write it once, and nothing else takes time."""
    have = [l for l in loops(task) if l != PLACEHOLDER]
    if any(l[1:] != ((), "None") for l in have):
        return None
    shape, axes = list(have[-1][0]), ["i%d" % i for i in range(len(have[-1][0]))]
    relu = {k: v for k, v in task.items() if k not in ("args", "ops")}
    relu["workload_key"] = json.dumps(["relu", shape, shape])
    relu["ops"] = [{"name": "data", "shape": shape, "dtype": "float32"},
                   {"name": "compute", "axis": [[a, 0, e] for a, e in zip(axes, shape)], "body": "max(data[%s], 0.0)" % ", ".join(axes)}]
    return relu

def main(set_tasks, records, folder):
    known = donors(json.load(open(set_tasks))["tasks"], records)
    nets, lines, tasks, told = [], {}, {}, []
    for name, seconds in MEASURED.items():
        net = json.load(open(os.path.join(folder, name + ".graph.json")))["networks"][0]
        net.update(device="v100", measured_s=seconds)
        nets.append(net)
        runs = {}
        for n in net["nodes"]:
            runs.setdefault(n.get("key"), []).append(n)
        for task in json.load(open(os.path.join(folder, name + ".tasks.json")))["tasks"]:
            key, task = task["workload_key"], plain(task) or task
            for n in runs.get(key, []):
                n["key"] = task["workload_key"]
            best = schedule(task, known)
            told.append("\t".join((name, str(len(runs.get(key, []))), key, task["workload_key"] if task["workload_key"] != key else "-",
                                   "%.9g" % best[0] if best else "-", best[2] if best else "-")))
            tasks[task["workload_key"]] = task
            if best:
                lines[task["workload_key"]] = json.dumps(under(best, task["workload_key"]))
    write = lambda name, text: open(os.path.join(folder, name), "w").write(text)
    write("roller.json", json.dumps({"schema": "cdmpp.netgraph", "version": 1, "networks": nets}))
    write("roller.tasks.json", json.dumps({"schema": "cdmpp.tasks", "version": 1, "tasks": list(tasks.values())}))
    write("roller.log", "".join(l + "\n" for l in lines.values()))
    write("roller.txt", "network\truns\ttask\tstands in\tfastest_s\tsteps of\n" + "\n".join(told) + "\n")

if __name__ == "__main__":
    main(*sys.argv[1:4])
