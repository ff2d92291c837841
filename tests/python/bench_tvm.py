"""bench_tvm.py MODEL... -- what 2,048 candidates cost a tuner, one thread. $CDMPP_LIBRARY names the library.

The 86 held-out programs of the sample over and over: 5,482 feature rows; "adapting": after 64
measured programs of the task. The least of nine calls, and their median."""
import lzma
import os
import sys
import time
import types

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path[:0] = [os.path.join(ROOT, "scripts", "python"), HERE]
os.environ.update(WORK=".", TASKS=os.path.join(ROOT, "examples/zen5/zen5.tasks.json.xz"), OPENBLAS_NUM_THREADS="1")

import cdmpp  # noqa: E402
import cdmpp_tvm  # noqa: E402
import standin  # noqa: E402

N = 2048


def least(what, call, n=9):
    took = []
    for _ in range(n):
        t0 = time.perf_counter()
        call()
        took.append(time.perf_counter() - t0)
    print("  %-34s %7.1f ms, median %6.1f, %5.1f us a candidate"
          % (what, 1e3 * min(took), 1e3 * np.median(took), 1e6 * min(took) / N), flush=True)


def rows_of(blob):
    words = np.frombuffer(blob, "<i4")
    at, out = words[0] + 3, []
    for size in words[1:words[0] + 1]:
        out.append(np.frombuffer(blob, "<f4")[at + 1:at + size].reshape(-1, 164))
        at += size
    return out


rows = rows_of(lzma.open(os.path.join(HERE, "data/held_out.packed.xz")).read())
lines = [x.rstrip().encode() for x in open(os.path.join(ROOT, "examples/zen5/held_out.json"))]
several = -(-N // len(rows))
rows, lines = (rows * several)[:N], (lines * several)[:N]
standin.FEATURES = dict(enumerate(rows))
blob = standin.packed([types.SimpleNamespace(line=i) for i in range(N)], 164)
print("%d candidates, %d rows, %.1f MB packed" % (N, sum(map(len, rows)), len(blob) / 1e6))
least("columns of TVM 0.10 and later", lambda: cdmpp_tvm._convert_packed(blob, N, 164))
for path in sys.argv[1:]:
    model = cdmpp.Model(path)
    print("%s: %s" % (os.path.basename(path), ", ".join(model.info["model"]["kinds"])))
    frozen = cdmpp.Scorer(model, device="zen5-avx512", tasks=os.environ["TASKS"])
    adapting = cdmpp.Scorer(model, device="zen5-avx512", adapt=True)
    task = frozen.task("task", flop=1e8)
    if model.takes_rows:
        least("AnsorModel, TVM's features", lambda: frozen.score(frozen.packed(blob, N, task), np.float32))
        some = adapting.packed(standin.packed([types.SimpleNamespace(line=i) for i in range(64)], 164), 64, task)
        adapting.observe(some, 3 * frozen.seconds(some))
        least("the same, adapting", lambda: adapting.score(adapting.packed(blob, N, task), np.float32))
        least("MetaModel, TVM's features", lambda: frozen.score(frozen.rows([r.astype(np.float64) for r in rows], task)))
    least("AnsorModel, features='cdmpp'", lambda: frozen.score(frozen.records(lines), np.float32))
