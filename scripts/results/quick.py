#!/usr/bin/env python3
"""The quick form of the results: examples/zen5 by task, three seeds, in a minute or two of processor time.

    quick.py run WORK               train and test; prints figures for figures.py put
    quick.py compare WORK           the same, and compares with docs/results/figures/quick.json

What is compared is the mean over the seeds. Its noise is the spread of the stored seeds: the mean of n seeds that are drawn alike differs from
the stored mean of n by a standard deviation of spread * sqrt(2 / n). Allowed are three of these, and at least 2 % of the value (another
compiler, other libraries). A figure that is better by more is told and passes: store it. Settings come from the environment: B, JOBS."""
import json, math, os, subprocess, sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import figures

SEEDS = (11, 12, 13)
BETTER = {"mape": "less", "spearman": "more", "top1": "more", "inside": "more"}
UNIT = {"mape": "%", "inside": "%"}

def sh(*argv):
    r = subprocess.run(argv, stdout=subprocess.PIPE, text=True, cwd=figures.ROOT)
    if r.returncode not in (0, 3):
        raise SystemExit("quick: %s: status %d" % (" ".join(argv), r.returncode))
    return r.stdout

def train(work, seed, config="configs/quickstart.yaml"):
    b = os.environ.get("B", "build/release")
    data, e = os.path.join(work, "quick.h5"), "examples/zen5/"
    if not os.path.exists(data):
        sh(b + "/cdmpp-extract", "-q", "--tasks", e + "zen5.tasks.json.xz", "--out", data, e + "measure_records")
    out = sh(b + "/cdmpp-train", config, "--quiet", "--json", "-j", os.environ.get("JOBS", str(os.cpu_count())), "--set", "data.files=" + data,
             "--set", "split.kind=task", "--set", "split.seed=%d" % seed, "--out", os.path.join(work, "quick.cdmpp"))
    t = json.loads(out)["result"]["metrics"]["test"]
    return {"mape": 100 * t["mape"], "spearman": t["spearman"], "top1": t["top1"], "inside": 100 * json.loads(out)["result"]["uncertainty"]["test"]["measured_inside"], "n": t["n"]}

def allowed(stored):
    """How far the mean of as many new seeds may be off, for the worse."""
    return max(3 * stored["spread"] * math.sqrt(2 / stored["seeds"]), 0.02 * abs(stored["value"]))

def worse(name, value, stored):
    by = value - stored["value"] if BETTER[name] == "less" else stored["value"] - value
    return by > allowed(stored)

def tell(runs):
    """Words for figures.py put."""
    for k in BETTER:
        v = [r[k] for r in runs]
        print("figure:%s=%.4g,%s,%d,%d,%.3g" % (k, figures.mean(v), UNIT.get(k, ""), sum(r["n"] for r in runs), len(v), figures.deviation(v)))

def compare(found):
    bad = 0
    for name, values in found.items():
        s, v = figures.Figures(os.path.join(figures.ROOT, "docs/results/figures")).figure("quick", name), figures.mean(values)
        w = worse(name, v, s)
        bad += w
        print("  %-4s %-10s %.3f, stored %.3f, allowed %.3f" % ("FAIL" if w else "ok", name, v, s["value"], allowed(s)))
    print("quick: %d passed, %d failed" % (len(found) - bad, bad))
    return 1 if bad else 0

def main(argv):
    work = argv[1]
    os.makedirs(work, exist_ok=True)
    runs = [train(work, s) for s in SEEDS]
    if argv[0] == "compare":
        return compare({k: [r[k] for r in runs] for k in BETTER})
    tell(runs)
    return 0

if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("run", "compare"):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
