#!/usr/bin/env python3
"""Answers of cdmpp-replay --json beside what was measured, as Markdown.

    replay_table.py e2e RECORDS.json NAME=ANSWERS.json...    TVM's networks; RECORDS.json: with --from-records
    replay_table.py roller NAME=ANSWERS.json...
The lift of a network (configs/network-costs.yaml) is fitted on the records' times of the others: leave one out."""
import json, sys

LIFT, CALL = 1.13, 1.7e-7       # what netcost_place.c applied, taken out again
LARGE = ["resnet_18", "squeezenet_v1.1", "mobilenet_v3", "mnasnet_1.0", "shufflenet_v2"]

def read(path):
    with open(path) as f:
        return json.load(f)

def parts(name, v):
    """Seconds of the tasks alone, of all else."""
    n = v["nodes"]["model"] + v["nodes"]["record"]
    tasks = v["latency_s"] * (1 - v["given_share"]) - n * CALL
    return tasks / (LIFT if name in LARGE else 1), v["latency_s"] * v["given_share"] + n * CALL

def fit(rec, names):
    num = den = 0
    for k in names:
        t, rest = parts(k, rec[k])
        y = rec[k]["measured_median_s"]
        num, den = num + t / y * (y - t - rest) / y, den + (t / y) ** 2
    return 1 + num / den

def one_out(rec, name, v):
    t, rest = parts(name, v)
    lift = fit(rec, [k for k in LARGE if k != name]) if name in LARGE else 1
    return t * lift + rest

def mean(x):
    return sum(x) / len(x)

def e2e(rec, sets):
    inside = {k: 1 - v["given_share"] for k, v in rec.items()}
    print("| network | tasks in the set, by time | " + " | ".join(n for n, _ in sets) + " |\n" + "| --- " * (2 + len(sets)) + "|")
    err = {n: {} for n, _ in sets}
    for k, v in rec.items():
        cell = []
        for n, s in sets:
            p = one_out(rec, k, s[k])
            err[n][k] = (p / v["measured_s"] - 1, p / v["measured_median_s"] - 1)
            cell.append("%+.1f, %+.1f" % (100 * err[n][k][0], 100 * err[n][k][1]))
        print("| %s | %.0f %% | %s |" % (k, 100 * inside[k], " | ".join(cell)))
    for text, names in (("mean of those with 85 % and more", [k for k in rec if inside[k] >= 0.85]), ("mean of all", list(rec))):
        row = ["%.1f, %.1f" % tuple(100 * mean([abs(err[n][k][w]) for k in names]) for w in (0, 1)) for n, _ in sets]
        print("| **%s** (n=%d) | | %s |" % (text, len(names), " | ".join(row)))
    print("\nLift of all five large networks: %.3f; without one each: %s." % (fit(rec, LARGE), ", ".join("%.3f" % fit(rec, [j for j in LARGE if j != k]) for k in LARGE)))

def roller(sets):
    print("| network | programs | measured | " + " | ".join(n for n, _ in sets) + " |\n" + "| --- " * (3 + len(sets)) + "|")
    for k in sets[0][1]:
        n = sum(sets[0][1][k]["nodes"].values())
        cell = []
        for _, s in sets:
            v = s[k]
            left = v["nodes"]["missing"]
            cell.append("%.1f ms, %+.1f %%" % (1e3 * v["latency_s"], 100 * (v["latency_s"] / v["measured_s"] - 1)) + (", without %d programs" % left if left else ""))
        print("| %s | %d | %.2f ms | %s |" % (k, n, 1e3 * v["measured_s"], " | ".join(cell)))

sets = [(a.split("=", 1)[0], read(a.split("=", 1)[1])) for a in sys.argv[2:] if "=" in a]
if sys.argv[1] == "e2e":
    e2e(read(sys.argv[2]), sets)
else:
    roller(sets)
