#!/usr/bin/env python3
"""baselines.py WORK -- XGBoost, Tiramisu's LSTM, TLP and cdmpp on examples/zen5 by task, the draws of quick.py; prints a Markdown table.

All answer with the median and train once, without folds, so that what differs is what they read and how they learn. TLP is trained twice: for seconds,
and as published by a loss of order alone, whose seconds are guesses and are left out. A training that is done is not done again."""
import json, os, sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import figures, quick

ORDER = ("fit.loss=1lambdarank", "fit.figure=loss")
MODELS = (("XGBoost", "sums and maxima of feature rows", "baseline-xgb", ()), ("Tiramisu", "loop nest and leaves", "baseline-lstm", ()),
          ("TLP", "steps of the schedule", "baseline-tlp", ()), ("TLP, order", "steps of the schedule", "baseline-tlp", ORDER),
          ("cdmpp", "feature rows", "quickstart", ()))
SAME = ("data.devices=[zen5-avx512]", "split.kind=task", "split.valid=0.15", "split.test=0.2", "filter.max_per_task=0", "model.folds=1", "predict.point=median")

def train(work, name, config, more, seed):
    done, data, e = os.path.join(work, "%s-%d.json" % (name.replace(", ", "-"), seed)), os.path.join(work, "steps.h5"), "examples/zen5/"
    b = os.environ.get("B", "build/release")
    if not os.path.exists(data):
        quick.sh(b + "/cdmpp-extract", "-q", "--steps", "--tasks", e + "zen5.tasks.json.xz", "--out", data, e + "measure_records")
    if not os.path.exists(done):
        settings = [w for s in SAME + tuple(more) + ("data.files=" + data, "split.seed=%d" % seed) for w in ("--set", s)]
        out = quick.sh(b + "/cdmpp-train", "configs/%s.yaml" % config, "--quiet", "--json", "-j", os.environ.get("JOBS", "1"), "--out",
                       os.path.join(work, "baseline.cdmpp"), *settings)
        figures.write(done, json.dumps(json.loads(out)["result"]["metrics"]["test"]))
    with open(done) as f:
        return json.load(f)

def cell(runs, key, by, form):
    v = [by * r[key] for r in runs]
    return (form + " +- " + form) % (figures.mean(v), figures.deviation(v))

def main(argv):
    os.makedirs(argv[1], exist_ok=True)
    print("| model | reads | n | MAPE | MAE(log) | RMSE(log) | Spearman | pairs in order | top-1 |\n| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, reads, config, more in MODELS:
        r = [train(argv[1], name, config, more, s) for s in quick.SEEDS]
        seconds = ("-", "-", "-") if more == ORDER else (cell(r, "mape", 100, "%.1f"), cell(r, "mae_log", 1, "%.3f"), cell(r, "rmse_log", 1, "%.3f"))
        print("| %s | %s | %d | %s | %s | %s | %s | %s | %s |" % (name, reads, sum(x["n"] for x in r), *seconds, cell(r, "spearman", 1, "%.3f"),
              cell(r, "pairwise", 100, "%.1f"), cell(r, "top1", 1, "%.2f")))
    return 0

if __name__ == "__main__":
    sys.exit(main(sys.argv) if len(sys.argv) == 2 else __doc__)
