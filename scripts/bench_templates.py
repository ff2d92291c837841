#!/usr/bin/env python3
"""Ten templates against random trials, on tasks of networks, on this machine.

    scripts/bench_templates.py FOLDER [--trials 1000] [--candidates 10] [--minutes N] [--networks A:STEP,B:STEP,...] [--table FILE] [--figure FILE]

Of each network every STEP-th task that has a template, from the first on: the registered test tasks (docs/results/test-sets/templates.txt). Each is searched by
`random` (--trials) and by `template` (--candidates), one thread, one after the other. Then the ten best programs of either search are measured again, in
turns, ROUNDS times; the least time of a side counts. That is robust against noise and against luck in a log of a thousand.

Logs that are in FOLDER already are gone on with. --minutes: no search begins later; tasks without both logs are left out, and said.
An idle machine, please. A thousand trials take about 15 minutes a task."""
import argparse
import json
import os
import subprocess
import sys
import time

BIN = os.environ.get("B", "build/release")
TEST = "resnet-50:5,mobilenet-v2:5,bert-base:2"
FINALISTS, ROUNDS = 10, 7


def run(*command):
    return subprocess.run([os.path.join(BIN, command[0]), *command[1:]], capture_output=True, text=True)


def tasks_of(network, step):
    """Numbers and shapes of the tasks that have templates."""
    said = run("cdmpp-tune", "--network", network, "--target", "llvm", "--threads", "1", "--templates", "--trials-per-task", "1", "--json")
    if said.returncode not in (0, 3):
        sys.exit(said.stderr)
    tasks = [(k, t["workload_key"]) for k, t in enumerate(json.loads(said.stdout)["result"]) if "templates" in t]
    return tasks[::step]


def records(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as f:
        return [(line, json.loads(line)) for line in f if line.endswith("\n")]


def search(network, number, tuner, trials, log):
    """Goes on until the log has so many records; fewer where the space has no more."""
    said = run("cdmpp-tune", "--network", network, "--task", "#%d" % number, "--target", "llvm", "--threads", "1", "--tuner", tuner, "--seed", "1", "--trials", str(trials),
               "--per-round", str(min(trials, 50)), "--budget-ms", "40", "--timeout", "2", "--out", log, "-q")
    if said.returncode not in (0, 3):
        sys.exit(said.stderr)


def mean(r):
    return sum(r["r"][0]) / len(r["r"][0])


def finalists(log):
    good = sorted((p for p in records(log) if not p[1]["r"][1]), key=lambda p: mean(p[1]))
    return [line for line, _ in good[:FINALISTS]]


def truth(tasks, sides, folder):
    """The least seconds of each side; programs of both in turns."""
    order = [(side, line) for lines in zip(*[s + [None] * (FINALISTS - len(s)) for s in sides]) for side, line in enumerate(lines) if line]
    chosen = os.path.join(folder, "finalists.json")
    with open(chosen, "w", encoding="utf-8") as f:
        f.writelines(line for _, line in order)
    best = [float("inf")] * len(sides)
    for k in range(ROUNDS):
        out = os.path.join(folder, "round.json")
        if os.path.exists(out):
            os.remove(out)
        said = run("cdmpp-profile", "records", "--tasks", tasks, "--threads", "1", "--budget-ms", "100", "--out", out, "-q", chosen)
        done = records(out)
        if len(done) != len(order):
            sys.exit("round %d: %d of %d programs were measured\n%s" % (k, len(done), len(order), said.stderr))
        for (side, _), (_, r) in zip(order, done):
            if not r["r"][1]:
                best[side] = min(best[side], min(r["r"][0]))
    return best


def task_file(network, folder):
    path = os.path.join(folder, network + ".tasks.json")
    if not os.path.exists(path):
        said = run("cdmpp-profile", "--list-tasks", "--network", network, "--target", "llvm", "--out-tasks", path)
        if said.returncode:
            sys.exit(said.stderr)
    return path


def row(name, key, number, trials, best):
    sizes = [s for s in json.loads(key)[1:] if isinstance(s, list)]
    shape = " to ".join("x".join(map(str, s)) for s in (sizes[0], sizes[-1]))
    return [f"{name} {number}", shape, *trials, "%.4g" % (best[0] * 1e3), "%.4g" % (best[1] * 1e3), "%.3f" % (best[1] / best[0])]


def measure(o):
    rows, missing, begin = [], [], time.time()
    for entry in o.networks.split(","):
        network, step = entry.split(":")
        for number, key in tasks_of(network, int(step)):
            logs = [os.path.join(o.folder, f"{network}.{number}.{t}.json") for t in ("random", "template")]
            for log, tuner, trials in zip(logs, ("random", "template"), (o.trials, o.candidates)):
                if not o.minutes or time.time() - begin < 60 * o.minutes:
                    search(network, number, tuner, trials, log)
            sides = [finalists(log) for log in logs]
            if not all(sides) or (o.minutes and len(records(logs[0])) < o.trials):
                missing.append(f"{network} {number}")
                continue
            rows.append(row(network, key, number, [len(records(log)) for log in logs], truth(task_file(network, o.folder), sides, o.folder)))
            print(*rows[-1], file=sys.stderr, flush=True)
    return rows, missing


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder")
    p.add_argument("--trials", type=int, default=1000)
    p.add_argument("--candidates", type=int, default=10)
    p.add_argument("--minutes", type=float, default=0)
    p.add_argument("--networks", default=TEST)
    p.add_argument("--table", help="write the table there")
    p.add_argument("--figure", help="write the share of tasks within 5 %% there, as scripts/results/figures.py takes it")
    o = p.parse_args()
    os.makedirs(o.folder, exist_ok=True)
    rows, missing = measure(o)
    if not rows:
        sys.exit("no task was measured")
    out = ["| task | from and to | random trials | templates | best random, ms | best template, ms | ratio |", "| --- | --- | ---: | ---: | ---: | ---: | ---: |"]
    out += ["| " + " | ".join(map(str, r)) + " |" for r in rows]
    if o.table:
        with open(o.table, "w", encoding="utf-8") as f:
            f.write("\n".join(out) + "\n")
    print("\n".join(out))
    within = sum(float(r[-1]) <= 1.05 for r in rows)
    if o.figure and not missing:
        with open(o.figure, "w", encoding="utf-8") as f:
            f.write("figure:within=%.0f,%%,%d\n" % (100 * within / len(rows), len(rows)))
    print(f"within 5 %: {within} of {len(rows)} tasks" + (f"; not measured: {', '.join(missing)}" if missing else ""))


main()
