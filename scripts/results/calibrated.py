#!/usr/bin/env python3
"""calibrated.py WORK [TABLE] -- a CPU that no model saw, and calibrated: leave-one-device-out over the CPUs that examples/ has records of.

Data and parts are those of kshot.py: one CPU is new, the records of the others train, the test is its programs of tasks that nobody trains on. The model is
of trees that correct the analytic time (as configs/default.yaml). Answers for the test programs:
    none      the most similar of the others answers, with the new CPU's own analytic times (cdmpp-predict --nearest)
    20 .. 200 so many programs of the pool, chosen by cdmpp-train --choose, calibrate the model (cdmpp-tune calibrate --records)
Prints words for figures.py put; writes a Markdown table to TABLE. From the environment what kshot.py reads, without EPOCHS and ROUNDS."""
import os, sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import figures, kshot, quick

SHOTS = (20, 50, 100, 200)

def train(out, files, seed):
    settings = ("data.files=" + files, "split.seed=%d" % seed, "train.seed=%d" % seed, "split.kind=task", "split.valid=0.1", "split.test=0.02",
                "model.folds=2", "train.facts=prior", "train.rounds=120", "train.eta=0.2")
    quick.sh(kshot.B + "/cdmpp-train", "configs/own.yaml", "--quiet", "--json", "-j", kshot.JOBS, "--out", out, *[w for s in settings for w in ("--set", s)])

def ask(work, model, out, *more):
    figures.write(out, quick.sh(kshot.B + "/cdmpp-predict", "--cost-model", model, "-j", kshot.JOBS, *kshot.TASKS, *more, "--quiet", "--json", "--eval", os.path.join(work, "asked")))

def read(path):
    import json
    with open(path) as f:
        d = json.load(f)
    e = d["evaluation"]
    return {"n": e["n"], "mape": 100 * e["mape"], "median": 100 * e["median_ape"], "log": e["mae_log"], "inside": 100 * d["inside_interval"] / d["with_interval"]}

def one(work, cpu, seed):
    """Figures of the arms, the first without a measurement."""
    at = lambda name: os.path.join(work, name)
    os.makedirs(work, exist_ok=True)
    kshot.once(at("logs"), lambda out: (kshot.write_logs(work, cpu, seed), figures.write(out, "done\n")))
    others, pool = (kshot.once(at(n + ".h5"), lambda out, n=n: kshot.extract(out, at(n))) for n in ("others", "pool"))
    base = kshot.once(at("base.cdmpp"), lambda out: train(out, others, seed))
    found = [read(kshot.once(at("none.json"), lambda out: ask(work, base, out, "--device", cpu, "--nearest")))]
    for k in SHOTS:
        few = kshot.once(at("k%d.json" % k), lambda out, k=k: kshot.choose(out, pool, k, seed))
        model = kshot.once(at("k%d.cdmpp" % k), lambda out, few=few: quick.sh(kshot.B + "/cdmpp-tune", "calibrate", "-q", "--json", "--force", "--records", few, *kshot.TASKS,
                                                                           "--cost-model", base, "--out", out))
        found.append(read(kshot.once(at("answer%d.json" % k), lambda out, model=model: ask(work, model, out, "--device", cpu))))
    print("results: calibrated, %s, seed %d, %s: MAPE %s; inside %s" % (cpu, seed, kshot.PART, " ".join("%.1f" % f["mape"] for f in found), " ".join("%.0f" % f["inside"] for f in found)),
          file=sys.stderr)
    return found

def main(work, table):
    seeds = [int(s) for s in os.environ.get("SEEDS", "1,2,3").split(",")]
    runs = {c: [one(os.path.join(work, "%s-%s-%d" % (kshot.PART, c, s)), c, s) for s in seeds] for c in kshot.CPUS}
    arms = ["none"] + [str(k) for k in SHOTS]
    rows = ["| new CPU | n | programs measured | MAPE | median | MAE(log) | 90 % interval holds |", "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    mean = lambda c, i, what: figures.mean(r[i][what] for r in runs[c])
    for c in kshot.CPUS:
        for i, arm in enumerate(arms):
            rows.append("| %s | %d | %s | %.1f +- %.1f | %.1f | %.3f | %.1f |" % (c, runs[c][0][0]["n"], arm, mean(c, i, "mape"), figures.deviation(r[i]["mape"] for r in runs[c]),
                                                                               mean(c, i, "median"), mean(c, i, "log"), mean(c, i, "inside")))
    if table:
        figures.write(table, "\n".join(rows) + "\n")
    n = sum(runs[c][0][0]["n"] for c in kshot.CPUS)
    for i, arm in enumerate(arms):
        print("figure:mape-%s=%.1f,%%,%d,%d" % (arm, figures.mean(mean(c, i, "mape") for c in kshot.CPUS), n, len(seeds)))
        print("figure:inside-%s=%.1f,%%,%d,%d" % (arm, figures.mean(mean(c, i, "inside") for c in kshot.CPUS), n, len(seeds)))
    return 0

if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None) if len(sys.argv) in (2, 3) else __doc__)
