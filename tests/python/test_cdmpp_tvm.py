"""The plug-in under a stand-in for TVM: same answers as cdmpp-predict, the score contract, faults, threads, adapting."""
import ctypes
import importlib
import json
import lzma
import os
import pickle
import re
import shutil
import struct
import subprocess
import sys
import threading
import types
import unittest
import warnings

import numpy as np
import standin

import cdmpp

W, TASKS, DEVICE = os.environ["WORK"], os.environ["TASKS"], "zen5-avx512"
MODEL, LEAVES, LOG = W + "/a.cdmpp", W + "/leaves.cdmpp", os.environ["HELD"]
with open(LOG) as f:
    LINES = [standin.without_costs(x) for x in f]
with open(W + "/predict.jsonl") as f:
    SECONDS = np.array([json.loads(x)["latency_s"] for x in f])
BLOB = lzma.open("tests/python/data/held_out.packed.xz").read()


def unpack(blob):
    n = struct.unpack_from("<i", blob)[0]
    sizes, at, out = struct.unpack_from("<%di" % n, blob, 4), 4 * (n + 3), []
    for size in sizes:
        out.append(np.frombuffer(blob, "<f4", size - 1, at + 4).reshape(-1, 164))
        at += 4 * size
    return out


ROWS = unpack(BLOB)
LATER = [r.copy() for r in ROWS]  # as TVM 0.19 has them: another curve of arithmetic intensity
for later, new in zip(LATER, np.split(np.load("tests/python/data/held_out_curve.npy"), np.cumsum([len(r) for r in ROWS])[:-1])):
    later[:, 147:157] = new
REFERENCE = cdmpp.Scorer(MODEL, tasks=TASKS)


def flop(key):
    info = cdmpp._sized(cdmpp._TaskInfo, workload_key=key.encode())
    task = cdmpp._Handle("task", "task_new", REFERENCE._tasks.p, ctypes.byref(info))
    return cdmpp.library().cdmpp_task_flop(task.p)


def task_of(line, target=None):
    key, text, hw = json.loads(line)[0][:3]
    names = importlib.import_module("cdmpp_tvm").HARDWARE
    return types.SimpleNamespace(workload_key=key, target=target or text, hardware_params=types.SimpleNamespace(**dict(zip(names, hw))),
                                 compute_dag=types.SimpleNamespace(flop_ct=flop(key)))


class Mod:
    """An IRModule: a hash, and the operations that TVM would count."""

    def __init__(self, line):
        self.key, self.flop = line, flop(json.loads(line)[0][0])

    def __hash__(self):
        return hash(self.key)


def context_of(line):
    return types.SimpleNamespace(mod=Mod(line), target=json.loads(line)[0][1], task_name="main")


def near(a, b, tolerance=1e-6):
    a, b = np.asarray(a, float), np.asarray(b, float)
    assert a.shape == b.shape and np.all(np.abs(a - b) <= tolerance * np.abs(b)), (a, b)


def far(scores):
    """Mean |ln| from what cdmpp-predict says."""
    return np.mean(np.abs(np.log(1 / np.asarray(scores) / SECONDS)))


class Case(unittest.TestCase):
    version = "0.9.0"

    def setUp(self):
        standin.FEATURES = dict(zip(LINES, ROWS))
        self.fresh(self.version)

    def fresh(self, version, width=164):
        standin.install(version, width)
        self.m = importlib.import_module("cdmpp_tvm")

    def fails(self, code, f, *args, **named):
        with self.assertRaises(cdmpp.CdmppError) as e:
            f(*args, **named)
        self.assertEqual(e.exception.code, code)
        return str(e.exception)


def states(indices):
    return [standin.State(LINES[i]) for i in indices]


# Candidates of one task that the log does not have: those of another one, they are rows after all.
ALL = range(len(LINES))


class Binding(Case):
    def test_errors_carry_the_text(self):
        text = self.fails("EIO", cdmpp.Model, W + "/nosuch.cdmpp")
        self.assertIn("/nosuch.cdmpp: cannot open", text)
        self.assertIn("expected one of " + DEVICE, self.fails("EMODEL", cdmpp.Scorer, MODEL, device="t4"))
        self.assertIn("nosuch", self.fails("EMODEL", cdmpp.Scorer, MODEL, profile="nosuch"))

    def test_finds_the_library_of_its_prefix(self):
        for folder in ("share/cdmpp/python", "lib"):
            os.makedirs(W + "/prefix/" + folder)
        os.symlink(os.environ["CDMPP_LIBRARY"], W + "/prefix/lib/libcdmpp.so.0")
        shutil.copy("scripts/python/cdmpp.py", W + "/prefix/share/cdmpp/python")
        alone = {k: v for k, v in os.environ.items() if k != "CDMPP_LIBRARY"}
        said = subprocess.run([sys.executable, "-c", "import cdmpp; print(cdmpp.library().cdmpp_version().decode())"],
                              cwd=W + "/prefix/share/cdmpp/python", env=dict(alone, PYTHONPATH=""), capture_output=True, text=True)
        self.assertEqual(said.stdout.split(), [cdmpp.library().cdmpp_version().decode()], said.stderr)

    def test_every_call_is_in_the_header(self):
        header = open("cdmpp.h").read()
        for name in cdmpp._CALLS:
            self.assertIn("cdmpp_%s(" % name, header)

    def test_structs_have_the_sizes_of_c(self):
        program = "#include <cdmpp.h>\n#include <stdio.h>\nint main(void) { printf(\"%zu %zu %zu %zu %zu %zu\\n\", sizeof(cdmpp_err), " \
                  "sizeof(cdmpp_task_info), sizeof(cdmpp_options), sizeof(cdmpp_text), sizeof(cdmpp_batch), sizeof(cdmpp_result)); }\n"
        with open(W + "/size.c", "w") as f:
            f.write(program)
        self.assertEqual(os.system("%s -I. -o %s/size %s/size.c" % (os.environ.get("CC", "cc"), W, W)), 0)
        ours = [ctypes.sizeof(k) for k in (cdmpp._Err, cdmpp._TaskInfo, cdmpp._Options, cdmpp._Text, cdmpp._Batch, cdmpp._Result)]
        self.assertEqual(os.popen(W + "/size").read().split(), [str(n) for n in ours])

    def test_predictions_say_why_they_are_out_of_range(self):
        with open(os.environ["HELD"], "rb") as f:
            lines = f.read().splitlines()[:8]
        with open(os.environ["WORK"] + "/predict.jsonl") as f:
            want = [json.loads(x) for x in f.read().splitlines()[:8]]
        scorer = cdmpp.Scorer(MODEL, tasks=TASKS)
        batch = scorer.records(lines)
        got = scorer.predict(batch)
        np.testing.assert_array_equal(got["seconds"], scorer.seconds(batch))
        np.testing.assert_allclose(got["low"], [w["low_s"] for w in want], rtol=1e-6)
        for reasons, w in zip(got["reasons"], want):
            self.assertEqual(bool(reasons), w["out_of_range"])
            self.assertTrue(all(r in w["reason"] for r in reasons))
        other = cdmpp.Scorer(MODEL, device="t4", nearest=True, devices_file="configs/devices.yaml", tasks=TASKS)
        self.assertTrue(all("device" in r for r in other.predict(other.records(lines))["reasons"]))
        with open("cdmpp.h") as f:
            names = re.findall(r"#define CDMPP_REASON_(\w+)\s+(\d+)u", f.read())
        self.assertEqual([int(v) for _, v in names], [1 << k for k in range(len(cdmpp.REASONS))])

    def test_definitions_that_are_not_used_are_warnings(self):
        matmul = "tests/fuzz/seeds/taskfile/matmul.tasks.json"
        with open(matmul, "rb") as f:
            other = f.read().replace(b"max(C[i, j], 0)", b"min(C[i, j], 0)")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            scorer = cdmpp.Scorer(MODEL, tasks=[matmul, matmul])
        with self.assertWarnsRegex(UserWarning, r"mine:2: an earlier definition differs and goes first: workload key \["):
            scorer.add_tasks("mine", other)

    def test_nearest_device_only_when_asked_for(self):
        scorer = cdmpp.Scorer(MODEL, device="t4", nearest=True, devices_file="configs/devices.yaml")
        self.assertEqual(cdmpp.library().cdmpp_context_device(scorer._context().p), DEVICE.encode())

    def test_import_needs_no_tvm(self):
        standin.remove()
        m = importlib.import_module("cdmpp_tvm")
        self.assertRaises(ImportError, lambda: m.AnsorModel)
        self.assertRaises(ImportError, lambda: m.MetaModel)
        self.assertRaises(AttributeError, lambda: m.nosuch)


class Ansor(Case):
    def predict(self, model, indices):
        return np.concatenate([standin.cpp_predict(model, task_of(LINES[i]), states([i])) for i in indices])

    def test_same_scores_as_cdmpp_predict(self):
        near(1 / self.predict(self.m.AnsorModel(MODEL), ALL), SECONDS)

    def test_a_recorded_blob_in_one_batch(self):
        scorer = cdmpp.Scorer(MODEL, device=DEVICE)
        one = [scorer.score(scorer.packed(standin.packed(s, 164), 1))[0][0] for s in ([types.SimpleNamespace(line=x)] for x in LINES)]
        all_at_once = scorer.score(scorer.packed(BLOB, len(LINES)))[0]
        near(all_at_once, one)
        for blob in (bytearray(BLOB), np.frombuffer(b"x" + BLOB, np.uint8)[1:]):  # of any kind, at any address
            near(scorer.score(scorer.packed(blob, len(LINES)))[0], all_at_once, 0)

    def test_the_order_that_tvm_gives_does_not_matter(self):
        model, random = self.m.AnsorModel(MODEL), np.random.RandomState(7)
        before = self.predict(model, ALL)
        for _ in range(3):
            for line, rows in zip(LINES, ROWS):
                rows = rows[random.permutation(len(rows))].copy()
                for r in rows:
                    blocks = r[57:147].reshape(5, 18)
                    key = blocks[:, [5, 3]]  # lines, bytes
                    for k in np.unique(key, axis=0):
                        tied = np.flatnonzero((key == k).all(axis=1))
                        blocks[tied] = blocks[random.permutation(tied)]
                standin.FEATURES[line] = rows
            self.assertEqual(self.predict(model, ALL).tobytes(), before.tobytes())

    def test_own_features_give_the_same(self):
        near(1 / self.predict(self.m.AnsorModel(MODEL, features="cdmpp", tasks=TASKS), ALL), SECONDS)

    def test_models_of_loop_nests_want_own_features(self):
        self.assertIn("loop nests", self.fails("EMODEL", self.m.AnsorModel, LEAVES))
        model = self.m.AnsorModel(LEAVES, features="cdmpp", tasks=TASKS)
        self.assertEqual(len(self.predict(model, range(3))), 3)

    def test_tasks_come_out_of_tvm_when_no_file_has_them(self):
        with open("tests/fuzz/seeds/pickle/gru_p4.pkl", "rb") as f:
            task = pickle.load(f)[0][0]
        with open("tests/cli/data/gru.json") as f:
            line = standin.without_costs(f.readline())
        key, task.target.text, hw = json.loads(line)[0][:3]
        self.assertEqual(str(task.workload_key), key)
        task.hardware_params.__dict__.update(zip(self.m.HARDWARE, hw))
        task.compute_dag.flop_ct = 1.0
        model = self.m.AnsorModel(MODEL, device=DEVICE, features="cdmpp")
        got = standin.cpp_predict(model, task, [standin.StateObject(line)] * 2)
        scorer = cdmpp.Scorer(MODEL, device=DEVICE, tasks="tests/fuzz/seeds/pickle/gru_p4.pkl")
        want = scorer.score(scorer.records([b'{"i": %s, "r": [[1], 0, 0, 0], "v": "v0.6"}' % line.encode()]))[0]
        near(got, [want[0], want[0]])

    def test_contract(self):
        model, task = self.m.AnsorModel(MODEL), task_of(LINES[0])
        standin.FEATURES[LINES[3]] = None
        standin.FEATURES[LINES[4]] = np.full((2, 164), np.nan, np.float32)
        got = model.predict(task, states(range(8)))
        self.assertEqual((got.dtype, got.shape), (np.float32, (8,)))
        self.assertTrue(np.isfinite(got).all() and (got >= 0).all())
        self.assertEqual(list(np.flatnonzero(got == got.min())), [3, 4])
        self.assertEqual(got[3], 0)
        got = model.predict(task, states([3, 3, 4]))
        self.assertTrue(np.isfinite(got).all() and (got >= 0).all() and got.max() > 0, got)
        self.assertEqual(self.m.AnsorModel(MODEL, failed=-np.inf).predict(task, states([3, 5]))[0], -np.inf)
        self.assertEqual(model.predict(task, []).shape, (0,))
        self.assertRaises(NotImplementedError, model.predict_stages, task, states([0]))

    def test_other_columns_say_both_numbers(self):
        self.fresh("0.9.0", 146)
        text = self.fails("EMODEL", self.m.AnsorModel(MODEL).predict, task_of(LINES[0]), states([0, 1]))
        self.assertIn("164", text)
        self.assertIn("146", text)

    def test_damage_is_an_error(self):
        scorer = cdmpp.Scorer(MODEL, device=DEVICE)
        for n in (0, 11, 400, len(BLOB) - 4):
            self.fails("EPARSE", lambda: scorer.score(scorer.packed(BLOB[:n], 86)))
        self.fails("EPARSE", lambda: scorer.score(scorer.packed(BLOB, 85)))

    def test_unknown_device_or_task_is_an_error(self):
        task = task_of(LINES[0], target="llvm -model=epyc-9999")
        self.assertIn("epyc-9999", self.fails("EMODEL", self.m.AnsorModel(MODEL).predict, task, states([0])))
        near(self.m.AnsorModel(MODEL, device=DEVICE).predict(task, states([0])), [1 / SECONDS[0]])
        model = self.m.AnsorModel(MODEL, device=DEVICE, features="cdmpp", tasks="tests/fuzz/seeds/pickle/gru_p4.pkl")
        self.assertIn("candidate 0", self.fails("ENOTASK", model.predict, task, states([0])))

    def test_columns_of_later_tvm_are_converted(self):
        self.fresh("0.19.0")
        standin.FEATURES = dict(zip(LINES, LATER))
        model = self.m.AnsorModel(MODEL)
        got = self.predict(model, ALL)
        raw = np.concatenate([model.scorer.score(model.scorer.rows([x], model._task(task_of(line))))[0] for x, line in zip(LATER, LINES)])
        self.assertLess(far(got), 0.1)
        self.assertLess(2 * far(got), far(raw))
        # in a batch with candidates that have no rows, or bad ones
        task = task_of(LINES[0])
        want = model.predict(task, states([1, 5, 6]))
        standin.FEATURES[LINES[2]] = None
        standin.FEATURES[LINES[3]] = np.zeros((0, 164), np.float32)
        near(model.predict(task, states([2, 1, 3, 5, 2, 6, 2])), [0, want[0], 0, want[1], 0, want[2], 0])
        standin.FEATURES[LINES[4]] = np.full((1, 164), np.nan, np.float32)
        near(model.predict(task, states([4, 1])), [0, want[0]])
        self.fresh("0.19.0", 146)
        self.fails("EMODEL", self.m.AnsorModel(MODEL).predict, task, states([0, 1]))

    def test_threads_share_a_model(self):
        for model in (self.m.AnsorModel(MODEL), self.m.AnsorModel(MODEL, features="cdmpp", tasks=TASKS),
                      self.m.AnsorModel(MODEL, adapt=True)):
            task, want, got = task_of(LINES[0]), [], [None] * 4
            # records name their own tasks, so each state keeps its line
            want = model.predict(task, states(ALL))

            def work(k):
                got[k] = [model.predict(task, states(ALL)) for _ in range(5)]

            threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
            [t.start() for t in threads]
            [t.join() for t in threads]
            for each in got:
                for x in each:
                    near(x, want, 0)


class Adapting(Case):
    FACTOR = 3.0

    def setUp(self):
        super().setUp()
        self.task = task_of(LINES[0])
        self.truth = self.FACTOR / self.m.AnsorModel(MODEL).predict(self.task, states(ALL))

    def pairs(self, indices, error_no=0):
        inputs = [standin.MeasureInput(self.task, standin.State(LINES[i])) for i in indices]
        return inputs, [standin.MeasureResult([self.truth[i]] * 3, error_no, "", 0, 0) for i in indices]

    def error(self, model):
        rest = range(40, len(LINES))
        return np.mean(np.abs(np.log(1 / model.predict(self.task, states(rest)) / self.truth[40:])))

    def test_it_improves(self):
        model = self.m.AnsorModel(MODEL, adapt=True)
        before = self.error(model)
        near(before, np.log(self.FACTOR), 1e-4)
        model.handle[1](*self.pairs(range(40)))
        self.assertEqual(model.scorer.count(), 40)
        self.assertLess(self.error(model), 0.5 * before)
        after = model.predict(self.task, states(range(40, 60)))
        model.save(W + "/seen.json")
        again = self.m.AnsorModel(MODEL, adapt=True)
        again.load(W + "/seen.json")
        near(again.predict(self.task, states(range(40, 60))), after, 1e-5)
        near(self.m.AnsorModel(MODEL, observed=W + "/seen.json").predict(self.task, states(range(40, 60))), after, 1e-5)

    def test_failed_measurements_do_not_count(self):
        model = self.m.AnsorModel(MODEL, adapt=True)
        model.update(*self.pairs(range(5), error_no=4))
        model.update([], [])
        self.assertEqual(model.scorer.count(), 0)
        near(self.error(model), np.log(self.FACTOR), 1e-4)

    def test_frozen_stays(self):
        model = self.m.AnsorModel(MODEL)
        model.update(*self.pairs(range(40)))
        near(self.error(model), np.log(self.FACTOR), 1e-4)
        model.save(W + "/copy.cdmpp")
        model.load(W + "/copy.cdmpp")
        near(self.error(model), np.log(self.FACTOR), 1e-4)

    def test_policies_replay_the_log(self):
        own = [task_of(x) for x in LINES[:4]]
        for features in ("tvm", "cdmpp"):
            model = self.m.AnsorModel(MODEL, adapt=True, features=features, tasks=TASKS)
            made = self.m.policies(own, model, log=LOG, params={"eps_greedy": 0.1})
            wanted = sum(json.loads(x)[0][0] in {t.workload_key for t in own} for x in LINES)
            self.assertEqual(model.scorer.count(), wanted)
            self.assertEqual([p.task for p in made], own)
            self.assertTrue(all(p.model is model and p.callbacks[0].filename == LOG for p in made))
        with open(W + "/other.json", "w") as f, open(LOG) as log:
            f.write(log.read().replace("-model=" + DEVICE, "-model=elsewhere"))
        self.assertEqual(model.replay(W + "/other.json", own), 0)
        made = self.m.policies(own, model, log=W + "/nosuch.json")
        self.assertIsNone(made[0].callbacks)


class Meta(Case):
    def candidates(self, indices):
        return [types.SimpleNamespace(line=LINES[i]) for i in indices]

    def test_same_scores_in_both_places(self):
        for version in ("0.9.0", "0.26.0"):
            self.fresh(version)
            model = self.m.MetaModel(MODEL)
            if version == "0.26.0":
                standin.FEATURES = dict(zip(LINES, LATER))
            got = [model.cpp_predict(context_of(LINES[i]), self.candidates([i]))[0] for i in ALL]
            self.assertLess(far(got), 1e-6 if version == "0.9.0" else 0.1)

    def test_contract(self):
        model, context = self.m.MetaModel(MODEL), context_of(LINES[0])
        standin.FEATURES[LINES[2]] = None
        got = model.cpp_predict(context, self.candidates(range(6)))
        self.assertEqual((got.dtype, got.shape), (np.float64, (6,)))
        self.assertTrue(np.isfinite(got).all() and (got >= 0).all())
        self.assertEqual(list(np.flatnonzero(got == 0)), [2])
        got = model.cpp_predict(context, self.candidates([2, 2]))
        self.assertTrue((got > 0).all())

    def test_other_columns_say_both_numbers(self):
        self.fresh("0.26.0", 172)
        text = self.fails("EMODEL", self.m.MetaModel, MODEL)
        self.assertIn("164", text)
        self.assertIn("172", text)
        self.fresh("0.9.0")
        standin.FEATURES[LINES[1]] = np.zeros((3, 100))
        text = self.fails("EMODEL", self.m.MetaModel(MODEL).predict, context_of(LINES[0]), self.candidates([0, 1]))
        self.assertIn("candidate 1: expected rows of 164 numbers, found shape (3, 100)", text)

    def test_adapting(self):
        model, context = self.m.MetaModel(MODEL, adapt=True), context_of(LINES[0])
        before = model.cpp_predict(context, self.candidates(ALL))
        truth = 3 / before
        results = [types.SimpleNamespace(run_secs=[standin.FloatImm(t)] * 2, error_msg=None) for t in truth[:40]]
        results[7] = types.SimpleNamespace(run_secs=None, error_msg="timed out")
        model.cpp_update(context, self.candidates(range(40)), results)
        self.assertEqual(model.scorer.count(), 39)
        after = model.cpp_predict(context, self.candidates(ALL))
        error = [np.mean(np.abs(np.log(1 / x[40:] / truth[40:]))) for x in (before, after)]
        self.assertLess(error[1], 0.5 * error[0])
        model.functions[1](W + "/meta.json")
        again = self.m.MetaModel(MODEL)
        again.functions[0](W + "/meta.json")
        near(again.cpp_predict(context, self.candidates(ALL)), after, 1e-5)

    def test_target_in_json(self):
        context = context_of(LINES[0])
        context.target = '{"kind": "llvm", "keys": ["cpu"], "mcpu": "skylake-avx512", "model": "%s"}' % DEVICE
        near(self.m.MetaModel(MODEL).cpp_predict(context, self.candidates([0])), [1 / SECONDS[0]])
        context.target = context.target.replace(DEVICE, "other")
        self.assertIn("other", self.fails("EMODEL", self.m.MetaModel(MODEL).predict, context, self.candidates([0])))


if __name__ == "__main__":
    result = unittest.TextTestRunner(verbosity=0).run(unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module("__main__")))
    bad = len(result.failures) + len(result.errors)
    print("python: %d passed, %d failed" % (result.testsRun - bad, bad))
    raise SystemExit(bad != 0)
