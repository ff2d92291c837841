#!/usr/bin/env python3
"""Tuners in a live search on this machine: how many trials one needs for what others reach.

    scripts/bench_search.py examples/zen4/search.tasks.json.xz zen4.cdmpp zen4 FOLDER [SEEDS]

Runs cdmpp (40 trials of each task), random and xgb (100) for every seed, one thread, and prints for each task the
trials after which cdmpp's best is as fast as theirs at the end: median over the seeds. Logs that are in FOLDER already
are kept. The model must not have seen the tasks. An idle machine, please: 20 minutes for 8 tasks and 3 seeds."""
import json
import lzma
import os
import statistics
import subprocess
import sys

TRIALS = {"cdmpp": (40, 5), "random": (100, 20), "xgb": (100, 10)}  # of a task, of a round


def search(tasks, model, device, folder, tuner, seed, n_task):
    trials, a_round = TRIALS[tuner]
    log = os.path.join(folder, f"{tuner}.{seed}.json")
    if os.path.exists(log):
        return log
    command = [os.path.join(os.environ.get("B", "build/release"), "cdmpp-tune"), "--tasks", tasks, "--threads", "1",
               "--tuner", tuner, "--seed", str(seed), "--trials", str(trials * n_task), "--trials-per-task", str(trials),
               "--per-round", str(a_round), "--budget-ms", "40", "--out", log]
    if tuner == "cdmpp":
        command += ["--model", model, "--device", device]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    print(tuner, seed, said.strip().splitlines()[-1], file=sys.stderr)
    return log


def curves(log):
    """Of each task, the best so far after 1, 2, ... trials; seconds."""
    best = {}
    with open(log, encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            costs = record["r"][0]
            curve = best.setdefault(record["i"][0][0], [])
            curve.append(min(sum(costs) / len(costs), curve[-1] if curve else 1e10))
    return best


def main():
    tasks, model, device, folder = sys.argv[1:5]
    seeds = range(1, 1 + (int(sys.argv[5]) if len(sys.argv) > 5 else 3))
    os.makedirs(folder, exist_ok=True)
    with (lzma.open if tasks.endswith(".xz") else open)(tasks, "rt", encoding="utf-8") as text:
        keys = [t["workload_key"] for t in json.load(text)["tasks"]]
    found = {(t, s): curves(search(tasks, model, device, folder, t, s, len(keys))) for s in seeds for t in TRIALS}
    for other, limit in (("random", 15), ("xgb", 40)):
        met = 0
        for key in keys:
            need, ms = [], []
            for s in seeds:
                ours, goal = found["cdmpp", s][key], found[other, s][key][-1]
                need.append(next((i + 1 for i, x in enumerate(ours) if x <= goal), float("inf")))
                ms.append(f"{ours[-1] * 1e3:.4g}/{goal * 1e3:.4g}")
            median = statistics.median(need)
            met += median <= limit
            print(f"{other:7} {key[:14]} trials {need} median {median}; best of 40 / theirs, ms: {' '.join(ms)}")
        print(f"{other}: at most {limit} trials on {met} of {len(keys)} tasks")


main()
