"""The plug-in inside a TVM that is installed: $CDMPP_TVM is a checkout with python/ and build/ (run.sh skips this without it).

Both tuners search a small product here with a model of the carried sample: what they ask, what the plug-in answers, what is measured."""
import json
import logging
import os
import pickle
import sys
import tempfile
import unittest

import numpy as np
import tvm
from tvm import auto_scheduler, te

import cdmpp
import cdmpp_tvm

MODEL, DEVICE = os.environ["WORK"] + "/a.cdmpp", "zen5-avx512"
SMALL = dict(auto_scheduler.SketchPolicy.DEFAULT_PARAMS, sample_init_min_population=24, sample_init_use_measured_ratio=0.0,
             evolutionary_search_population=32, evolutionary_search_num_iters=1)
TARGET = tvm.target.Target("llvm -num-cores=1")  # of the machine: what is drawn is measured here


@auto_scheduler.register_workload
def product_and_relu(n, m, k):
    a, b = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    return [a, b, te.compute((n, m), lambda i, j: te.max(c[i, j], 0.0), name="D")]


def task_of(n=64):
    return auto_scheduler.SearchTask(func=product_and_relu, args=(n, 96, 128), target=TARGET)


def drawn(task, seed=1):
    policy = auto_scheduler.SketchPolicy(task, auto_scheduler.RandomModel(), params=SMALL, seed=seed, verbose=0)
    return policy.sample_initial_population()


class Ansor(unittest.TestCase):
    def test_the_two_kinds_of_features_agree(self):
        self.agree(task_of(), 20)

    def test_a_gpu_task_is_refused_by_a_cpu_model(self):
        known = auto_scheduler.HardwareParams(num_cores=-1, vector_unit_bytes=16, cache_line_bytes=64, max_shared_memory_per_block=49152,
                                              max_local_memory_per_block=2147483647, max_threads_per_block=1024, max_vthread_extent=8, warp_size=32)
        task = auto_scheduler.SearchTask(func=product_and_relu, args=(64, 96, 128), target=tvm.target.Target("cuda -model=v100"), hardware_params=known)
        states = drawn(task)
        for features in ("tvm", "cdmpp"):
            with self.assertRaisesRegex(cdmpp.CdmppError, "is for a GPU"):
                cdmpp_tvm.AnsorModel(MODEL, device=DEVICE, features=features).predict(task, states)

    def agree(self, task, least):
        """TVM's features of its own states against ours from their steps. TVM orders buffers of equal key by address, so some rows may differ in order."""
        states = drawn(task)
        self.assertGreater(len(states), least)
        a = cdmpp_tvm.AnsorModel(MODEL, device=DEVICE, features="tvm").predict(task, states)
        b = cdmpp_tvm.AnsorModel(MODEL, device=DEVICE, features="cdmpp").predict(task, states)
        self.assertTrue((a > 0).all() and (b > 0).all())
        off = np.abs(a / b - 1)
        print("real TVM %s: %d states of a product on %s, TVM's features against ours: %d equal to 1e-5, largest difference %.2g"
              % (tvm.__version__, len(states), task.target.kind.name, (off < 1e-5).sum(), off.max()))
        self.assertGreater(np.mean(off < 1e-5), 0.5)
        self.assertGreater(np.corrcoef(np.argsort(np.argsort(a)), np.argsort(np.argsort(b)))[0, 1], 0.9)

    def test_predict_is_what_the_command_says(self):
        task = task_of()
        states = drawn(task)[:8]
        ours = cdmpp_tvm.AnsorModel(MODEL, device=DEVICE, features="cdmpp")
        with tempfile.TemporaryDirectory() as d:
            log = os.path.join(d, "log.json")
            result = auto_scheduler.measure.MeasureResult([1.0], 0, "", 0, 0)
            auto_scheduler.save_records(log, [auto_scheduler.measure.MeasureInput(task, s) for s in states], [result] * len(states))
            tasks = os.path.join(d, "tasks.pkl")
            with open(tasks, "wb") as f:
                pickle.dump([task], f)
            scorer = cdmpp.Scorer(MODEL, device=DEVICE, tasks=tasks)
            with open(log, "rb") as f:
                seconds = scorer.seconds(scorer.records([x.strip() for x in f]))
        score = ours.predict(task, states)
        np.testing.assert_allclose(score / score.max(), (1 / seconds) / (1 / seconds).max(), rtol=1e-5)

    def tune(self, features, adapt):
        task = task_of()
        model = cdmpp_tvm.AnsorModel(MODEL, device=DEVICE, features=features, adapt=adapt)
        states = drawn(task, seed=7)
        before = model.predict(task, states)
        with tempfile.TemporaryDirectory() as d:
            log = os.path.join(d, "log.json")
            options = auto_scheduler.TuningOptions(num_measure_trials=6, num_measures_per_round=3, verbose=0,
                                                   measure_callbacks=[auto_scheduler.RecordToFile(log)],
                                                   runner=auto_scheduler.LocalRunner(number=1, repeat=1, min_repeat_ms=1, timeout=60))
            scheduler = auto_scheduler.TaskScheduler([task], callbacks=[])  # its own write total_latency.tsv here
            scheduler.tune(options, search_policy=cdmpp_tvm.policies([task], model, params=SMALL, seed=3, verbose=0))
            with open(log) as f:
                records = [json.loads(x) for x in f]
            self.assertGreaterEqual(len(records), 6)
            self.assertTrue(any(r["r"][1] == 0 for r in records))  # measured, without error
            sch, args = task.apply_best(log)
            tvm.build(sch, args, TARGET)
            again = cdmpp_tvm.AnsorModel(MODEL, device=DEVICE, features=features, adapt=adapt)
            good = sum(r["r"][1] == 0 for r in records)
            self.assertEqual(again.replay(log, [task]), good if adapt else 0)
        after = model.predict(task, states)
        if adapt:
            self.assertFalse(np.array_equal(before, after))  # it learned from what was measured
        elif features == "cdmpp":
            np.testing.assert_array_equal(before, after)

    def test_tunes_with_tvm_features(self):
        self.tune("tvm", False)

    def test_tunes_with_our_features_and_adapts(self):
        self.tune("cdmpp", True)

    def test_tunes_frozen(self):
        self.tune("cdmpp", False)


class Meta(unittest.TestCase):
    def test_meta_schedule_asks_and_measures(self):
        from tvm import meta_schedule as ms
        model = cdmpp_tvm.MetaModel(MODEL, device=DEVICE, adapt=True)
        asked = []
        score = model.scorer.score
        model.scorer.score = lambda *a, **k: asked.append(score(*a, **k)[0]) or (asked[-1], None)
        mod = te.create_prim_func(product_and_relu(64, 96, 128))
        with tempfile.TemporaryDirectory() as d:
            tuned = ms.tune_tir(mod, TARGET, work_dir=d, cost_model=model, config=ms.TuneConfig(
                strategy="evolutionary", num_trials_per_iter=4, max_trials_per_task=8, max_trials_global=8,
                search_strategy_config={"population_size": 16, "init_min_unmeasured": 8, "genetic_num_iters": 1}))
            with open(os.path.join(d, "database_tuning_record.json")) as f:
                self.assertGreaterEqual(sum(1 for x in f if x.strip()), 4)
        self.assertIsNotNone(tuned)
        self.assertTrue(asked)
        every = np.concatenate([np.asarray(a) for a in asked])
        self.assertTrue((every >= 0).all() and np.isfinite(every).all() and all((np.asarray(a) > 0).any() for a in asked))


if __name__ == "__main__":
    logging.getLogger("tvm").setLevel(logging.WARNING)
    unittest.main(argv=sys.argv)
