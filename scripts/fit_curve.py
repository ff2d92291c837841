"""fit_curve.py OUT.py CPU.h5 CPU_NEW.h5 GPU.h5 GPU_NEW.h5 -- the table of scripts/python/cdmpp_tvm.py: as_tvm_09.

TVM 0.10 (auto_scheduler) and 0.11 (meta_schedule) draw the curve of arithmetic intensity over operations, columns 147 to
156, in another way. The old values are not in the new ones, but a linear map of the whole row comes close. CPU.h5 and
GPU.h5 are data sets as cdmpp-extract makes them; the _NEW ones hold the same programs, extracted by a build whose
cd_feature_row_curve (features/rows/leaf.c) works as TVM 0.10 does: o[k] = 2^ops_log[k], m[k] = 2^mem_log[k], and each
out[i] is slog of what it was before. Prints R^2 of each column on a third of the tasks, which that fit has not seen;
the table is then fitted to all. Needs python3-h5py.
"""
import base64
import os
import sys

import h5py
import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "python"))
from cdmpp_tvm import CURVE, curve_inputs  # noqa: E402


def load(path):
    with h5py.File(path) as f:
        return f["features/rows"][:].astype(float), np.repeat(f["key/task"][:], np.diff(f["features/row_ptr"][:]))


def fit(x, y):
    mean, width = x[:, :-1].mean(0), x[:, :-1].std(0)
    width[width < 1e-6] = np.inf  # constant columns say nothing
    z = (x[:, :-1] - mean) / width
    w = np.linalg.solve(z.T @ z + np.eye(z.shape[1]), z.T @ (y - y.mean(0))) / width[:, None]
    return np.vstack([w, y.mean(0) - mean @ w]).astype(np.float32)


table = []
for old, new in (sys.argv[2:4], sys.argv[4:6]):
    (a, task), (b, _) = load(old), load(new)
    assert a.shape == b.shape and np.allclose(np.delete(a, CURVE, 1), np.delete(b, CURVE, 1))
    some = (b[:, 1:7] > 0).any(1)  # without float operations the curve is 0 in both
    assert not a[~some][:, CURVE].any() and not b[~some][:, CURVE].any()
    x, y, seen = curve_inputs(b[some]), a[some][:, CURVE], task[some] % 3 != 0
    error = ((x[~seen] @ fit(x[seen], y[seen]) - y[~seen]) ** 2).sum(0)
    r2 = 1 - error / ((y[~seen] - y[~seen].mean(0)) ** 2).sum(0)
    print("%s: %d rows, R^2 on unseen tasks" % (old, len(x)), " ".join("%.3f" % v for v in r2))
    table.append(fit(x, y))
table = np.ascontiguousarray(np.stack(table), "<f4")
text = base64.b64encode(table.tobytes()).decode()
with open(sys.argv[1], "w") as f:
    f.write('"""The linear map of cdmpp_tvm.as_tvm_09, fitted and written by scripts/fit_curve.py: <f4 of shape %s, base64 of the bytes."""\n' % (table.shape,))
    f.write("SHAPE = %r\nDTYPE = '<f4'\nTABLE = \"\"\"\n" % (table.shape,))
    f.writelines(text[i:i + 120] + "\n" for i in range(0, len(text), 120))
    f.write('"""\n')
