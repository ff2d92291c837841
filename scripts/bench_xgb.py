#!/usr/bin/env python3
"""XGBoost's Python package on the very matrices that cdmpp-train makes of a data set.

    bench_xgb.py DATA.h5 BENCH_BOOST FOLDER [ROUNDS [KEY=VALUE ...]]

BENCH_BOOST writes the matrices of the train and validation part of a split by record (sums and
maxima of the feature rows) into FOLDER and trains ROUNDS trees (default 100), squared error of
log(latency), one thread; the package trains on the files with the same parameters and the same base
score, the validation part scored each round on both sides. CPU seconds from the end of the first
round to the end of the last, so without loading and quantising; in turn, the least of three. Needs
python3-xgboost, python3-numpy.
"""
import os, subprocess, sys, time
import numpy as np, xgboost as xgb

data, bench, folder = sys.argv[1:4]
rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 100
PARAM = dict(eta=0.1, max_depth=8, subsample=0.8, colsample_bytree=0.5, min_child_weight=1, max_bin=256, tree_method="hist",
             nthread=1, seed=1, verbosity=0)
KEYS = ["split.kind=record", "train.loss=squared", "train.early_stop=0", f"train.rounds={rounds}", *sys.argv[5:]]


class Clock(xgb.callback.TrainingCallback):
    def after_iteration(self, model, epoch, evals_log):
        self.last = time.process_time()
        if epoch == 0:
            self.first = self.last
        return False


def ours():
    out = subprocess.run([bench, data, folder, *KEYS], check=True, capture_output=True, text=True).stdout
    return dict(w.split("=") for w in out.split("\n")[0].split()[1:])


def part(name, rows, width):
    x = np.fromfile(f"{folder}/{name}.x", "<f4").reshape(rows, width)
    return xgb.DMatrix(x, np.fromfile(f"{folder}/{name}.y", "<f4"), nthread=1)


def theirs(train, valid, bias):
    clock = Clock()
    b = xgb.train({**PARAM, "base_score": bias}, train, rounds, evals=[(valid, "valid")], verbose_eval=False, callbacks=[clock])
    return b, clock.last - clock.first


def nodes(b):
    return sum(t.count("\n") for t in b.get_dump())


os.makedirs(folder, exist_ok=True)
cpu = [[], []]
for k in range(3):
    told = ours()
    cpu[0].append(float(told["cpu_s"]))
    if not k:
        n, width = int(told["rows"]), int(told["width"])
        train, valid = part("train", n, width), part("valid", int(told["valid_rows"]), width)
    b, s = theirs(train, valid, float(told["bias"]))
    cpu[1].append(s)
# every round was trained; the file keeps those up to the best one
print(f"  xgboost {xgb.__version__}, {rounds} trees of {n} x {width}: CPU {min(cpu[0]):.2f} s, Python {min(cpu[1]):.2f} s, "
      f"ratio {min(cpu[0]) / min(cpu[1]):.3f}; nodes of the first {told['rounds']} trees: {nodes(xgb.Booster(model_file=folder + '/model.ubj'))}, "
      f"Python {nodes(b[:int(told['rounds'])])}")
