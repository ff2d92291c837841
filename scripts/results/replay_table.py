#!/usr/bin/env python3
"""Answers of cdmpp-replay beside what was measured, as Markdown.

    replay_table.py e2e E2E.json WORK NAME=OPTIONS...    TVM's networks; OPTIONS of cdmpp-replay for a column: the model, or --from-records
    replay_table.py roller NAME=ANSWERS.json...

What a network costs over its operators (configs/network-costs.yaml) is fitted anew for each network, by cdmpp-replay --fit-network-cost on
the records' times of all the others: no network is judged by a fit that saw it, and none is named here. COMMON: options of every
replay. B: the build."""
import json, os, subprocess, sys

def read(path):
    with open(path) as f:
        return json.load(f)

def save(path, x):
    with open(path, "w") as f:
        json.dump(x, f)
    return path

def replay(graph, options, costs=None):
    env = dict(os.environ)
    if costs is not None:
        env["CDMPP_NETWORK_COSTS"] = costs
    argv = [os.environ.get("B", "build/release") + "/cdmpp-replay", "--quiet", "--graph", graph] + os.environ.get("COMMON", "").split() + options
    r = subprocess.run(argv, env=env, stdout=subprocess.PIPE, text=True)
    if r.returncode not in (0, 3):
        sys.exit("replay_table: %s: status %d" % (" ".join(argv), r.returncode))
    return r.stdout

def mean(x):
    return sum(x) / len(x)

def entry(path):
    """lift and lift_from of a fit."""
    found = {}
    with open(path) as f:
        for line in f:
            for key in ("lift", "lift_from"):
                if line.strip().startswith(key + ":"):
                    found[key] = float(line.split(":")[1])
    return "lift %.3f from %.2f" % (found["lift"], found["lift_from"]) if found.get("lift") else "no lift"

def e2e(path, work, columns):
    nets, rows = read(path), []
    for name, net in nets.items():
        own, others = os.path.join(work, name + ".json"), os.path.join(work, name + ".others.json")
        costs = os.path.join(work, name + ".costs.yaml")
        save(own, {name: net})
        save(others, {k: v for k, v in nets.items() if k != name})
        if os.path.exists(costs):
            os.remove(costs)
        replay(others, ["--from-records", "--fit-network-cost", costs])
        got = [json.loads(replay(own, ["--json", "--measured"] + o.split(), costs))[name] for _, o in columns]
        rows.append((name, 1 - got[0]["given_share"], [(v["latency_s"] / v["measured_s"] - 1, v["latency_s"] / v["measured_median_s"] - 1) for v in got], entry(costs)))
    print("| network | tasks in the set, by time | %s | fitted without it |\n%s|" % (" | ".join(n for n, _ in columns), "| --- " * (3 + len(columns))))
    for name, share, err, cost in rows:
        print("| %s | %.0f %% | %s | %s |" % (name, 100 * share, " | ".join("%+.1f, %+.1f" % (100 * a, 100 * b) for a, b in err), cost))
    print("\n| networks | n | %s |\n%s|" % (" | ".join(n for n, _ in columns), "| --- " * (2 + len(columns))))
    for what, these in (("those with at least 85 % of their time in tasks of the set", [r for r in rows if r[1] >= 0.85]), ("all", rows)):
        cells = ["%.1f, %.1f" % tuple(100 * mean([abs(r[2][k][w]) for r in these]) for w in (0, 1)) for k in range(len(columns))]
        print("| %s | %d | %s |" % (what, len(these), " | ".join(cells)))

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

if len(sys.argv) > 4 and sys.argv[1] == "e2e":
    e2e(sys.argv[2], sys.argv[3], [a.split("=", 1) for a in sys.argv[4:]])
elif len(sys.argv) > 2 and sys.argv[1] == "roller":
    roller([(a.split("=", 1)[0], read(a.split("=", 1)[1])) for a in sys.argv[2:]])
else:
    sys.exit(__doc__)
