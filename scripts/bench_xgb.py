#!/usr/bin/env python3
"""XGBoost's Python package on the matrix that cdmpp-train makes of a data set.

    bench_xgb.py DATA.h5 CDMPP_TRAIN [ROUNDS]

Both train ROUNDS trees (default 100) of sums and maxima of the feature rows, squared error of
log(latency), one thread, the same parameters, with the validation part scored each round; the
time of loading and of the first tree is subtracted (a run of one tree). CPU seconds; the ratio is of this run.
Needs python3-xgboost, python3-h5py, python3-numpy.
"""
import json, resource, subprocess, sys
import h5py, numpy as np, xgboost as xgb

path, train, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 100
PARAM = dict(eta=0.1, max_depth=8, subsample=0.8, colsample_bytree=0.5, min_child_weight=1, max_bin=256,
             tree_method="hist", nthread=1, seed=1)


def ours(n):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    out = subprocess.run([train, "configs/baseline-xgb.yaml", "--quiet", "--json", "-j1", "--out", "/dev/null", "--set", "data.files=" + path,
                          "--set", f"train.rounds={n}", "--set", "train.early_stop=0", "--set", "filter.max_per_task=0",
                          "--set", "split.kind=record"], check=True, capture_output=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    split = json.loads(out)["result"]["split"]
    return after.ru_utime - before.ru_utime, split["train"]["programs"], split["validation"]["programs"]


def matrix(n_train, n_valid):
    with h5py.File(path) as f:
        keep = np.where(f["/label/error"][:] == 0)[0][:n_train + n_valid]
        row, ptr = f["/features/rows"][:], f["/features/row_ptr"][:]
        y = np.log(f["/label/latency_s"][:][keep])
    x = np.stack([np.concatenate([row[ptr[i]:ptr[i + 1]].sum(0), row[ptr[i]:ptr[i + 1]].max(0), [0]]) for i in keep])
    return xgb.DMatrix(x[:n_train], y[:n_train]), xgb.DMatrix(x[n_train:], y[n_train:])


def theirs(n, a, b):
    before = resource.getrusage(resource.RUSAGE_SELF)
    xgb.train(PARAM, a, n, evals=[(b, "valid")], verbose_eval=False)
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime - before.ru_utime


best = [1e9, 1e9]
one, n_train, n_valid = ours(1)
a, b = matrix(n_train, n_valid)
first = theirs(1, a, b)
for _ in range(3):
    best[0] = min(best[0], ours(rounds + 1)[0] - one)
    best[1] = min(best[1], theirs(rounds + 1, a, b) - first)
print(f"xgboost {rounds} trees of {n_train} x {a.num_col()}: cdmpp-train {best[0]:.2f} s, Python {best[1]:.2f} s, ratio {best[0] / best[1]:.3f}")
