"""cdmpp_tvm -- models of cdmpp as cost models of unmodified TVM (docs/reference/tvm.md).

    search policy -- predict(task, states) --> packed features, a byte array --+
                     update(inputs, results)   or lines of a measure log       +--> cdmpp.Scorer
    evolutionary  -- predict(context, cands) -> rows (k,164) of each ----------+

AnsorModel: auto_scheduler, TVM 0.8 to 0.19 (0.7 with features="tvm" only). MetaModel: meta_schedule, TVM 0.9 and
later; from 0.24 on it is tvm.s_tir.meta_schedule. Both classes are made at first use: importing this needs no TVM.
"""
import base64
import importlib
import json
import os
import pickle

import numpy as np

import cdmpp_curve
from cdmpp import CdmppError, Model, Scorer, library  # noqa: F401 (names for users)

HARDWARE = ("num_cores", "vector_unit_bytes", "cache_line_bytes", "max_shared_memory_per_block",
            "max_local_memory_per_block", "max_threads_per_block", "max_vthread_extent", "warp_size")


# ---- both tuners ----
def _version():
    found = str(getattr(importlib.import_module("tvm"), "__version__", "0.9")).split(".")
    return tuple(int("".join(c for c in x if c.isdigit()) or 0) for x in found[:2])


CURVE = np.arange(147, 157)  # arith_intensity_curve_0 .. 9
_table = []


def curve_inputs(rows):
    """(n,175): what the ten columns of TVM 0.9 are a linear map of: the row, its new curve as logarithms, 1."""
    ops = np.log2(1 + (np.exp2(rows[:, 1:7]) - 1).sum(1))[:, None] + np.log2(np.arange(1, 11) / 10)
    data = ops - np.log2(np.maximum(np.exp2(rows[:, CURVE]) - 1, 1e-9))
    return np.concatenate([np.delete(rows, CURVE, 1), rows[:, CURVE], ops / np.maximum(data, 1), np.ones((len(rows), 1))], 1)


def as_tvm_09(rows):
    """Columns CURVE (n,10) as TVM 0.9 computes them, which models are trained on, for rows of a later one. Close, not
    equal: the old values are not in the new ones (scripts/fit_curve.py, docs/reference/tvm.md)."""
    if not _table:
        _table.append(np.frombuffer(base64.b64decode(cdmpp_curve.TABLE), cdmpp_curve.DTYPE).reshape(cdmpp_curve.SHAPE))
    rows = np.asarray(rows, np.float64)
    out, some, gpu = np.zeros((len(rows), len(CURVE))), (rows[:, 1:7] > 0).any(1), rows[:, 49] > 0.5
    for which, table in zip((some & ~gpu, some & gpu), _table[0]):  # 0 without float operations
        if which.any():
            out[which] = curve_inputs(rows[which]) @ table
    return out


def _convert_packed(blob, n, n_col):
    """The same in a packed batch. What does not fit is left for the library to refuse."""
    data = np.frombuffer(blob, "<f4")
    data = data if data.flags.writeable else data.copy()
    size = data.view("<i4")[1:n + 1].astype(np.int64)
    count = np.maximum(size - 1, 0) // n_col
    if (size == (1 + count * n_col) * (size > 0)).all() and n + 3 + size.sum() <= len(data) and count.sum():
        first = n + 4 + np.cumsum(size) - size
        start = np.repeat(first - n_col * (np.cumsum(count) - count), count) + n_col * np.arange(count.sum())
        rows = data[start[:, None] + np.arange(n_col)]
        good = np.isfinite(rows).all(1)
        data[start[good, None] + CURVE] = as_tvm_09(rows[good])
    return data


def _target_text(target):
    """ "llvm -mcpu=...": what TVM prints before it printed JSON. """
    text = str(target)
    if not text.lstrip().startswith("{"):
        return text
    items = json.loads(text)
    return " ".join([items.pop("kind")] + ["-%s=%s" % (k, v) for k, v in items.items() if isinstance(v, (str, int))])


def _device_of(target):
    """What must agree for measured seconds to be of the same device: "cuda -model=t4 ..." is (cuda, -model=t4)."""
    words = _target_text(target).split()
    return words[0], [w for w in words if w.startswith("-model=")]


def _number(x):
    return float(getattr(x, "value", x))  # FloatImm or a number


def _median(costs):
    """The label that models learn: the median of the repeats; NaN where there are none."""
    costs = [_number(x) for x in costs or ()]
    return float(np.median(costs)) if costs else float("nan")


# ---- auto_scheduler ----
def _groups(inputs, results):
    """Measured pairs by task, in order: [(task, [input], [seconds])]."""
    found = {}
    for i, r in zip(inputs, results):
        entry = found.setdefault((i.task.workload_key, str(i.task.target)), (i.task, [], []))
        entry[1].append(i)
        entry[2].append(_median(r.costs) if int(r.error_no) == 0 else float("nan"))
    return found.values()


def _make_ansor():
    from tvm.auto_scheduler import _ffi_api, measure, measure_record
    from tvm.auto_scheduler.cost_model.cost_model import PythonBasedModel
    from tvm.auto_scheduler.loop_state import State

    class AnsorModel(PythonBasedModel):
        """A cost model for auto_scheduler's search policies.

        features: "tvm" (TVM lowers each candidate; its packed features go to the library as they are) or "cdmpp" (the
        library lowers the schedule's steps; TVM does nothing, and models that read loop nests work too).
        failed: the score of what cannot be lowered; -inf, as TVM's own model says, keeps it out of the first population.
        Other options: Scorer."""

        def __init__(self, model, device=None, adapt=False, features="tvm", failed=0.0, **options):
            if features not in ("tvm", "cdmpp"):
                raise ValueError("features: expected 'tvm' or 'cdmpp', found %r" % (features,))
            self.scorer, self.features, self.failed = Scorer(model, device, adapt, **options), features, failed
            if features == "tvm" and not self.scorer.model.takes_rows:
                raise CdmppError("EMODEL", "the model reads loop nests, which TVM's features do not hold: features='cdmpp'")
            self._later = _version() >= (0, 10)  # its curve is another
            self._seen, self._known = {}, bool(options.get("tasks"))
            super().__init__()

        def predict(self, task, states):
            scores, status = self.scorer.score(self._batch(task, states), np.float32)
            if (status == 0).any():  # else all have the least positive score
                scores[status != 0] = self.failed
            return scores

        def update(self, inputs, results):
            if self.scorer.adapt:
                for task, group, seconds in _groups(inputs, results):
                    self.scorer.observe(self._batch(task, [i.state for i in group]), seconds)

        def predict_stages(self, task, states):
            raise NotImplementedError("no search policy asks for stages, and TVM's buffer for them is too small")

        def replay(self, log, tasks):
            """Enter the records of a log that are of `tasks` and their devices; how many. A frozen model enters none."""
            if not self.scorer.adapt:
                return 0
            known, n = {t.workload_key: t for t in tasks}, 0
            for task, group, seconds in _groups(*measure_record.RecordReader(os.fspath(log)).read_lines()):
                ours = known.get(task.workload_key)
                if ours is not None and _device_of(ours.target) == _device_of(task.target):
                    batch = self._batch(ours, [i.state for i in group])
                    n += self.scorer.observe(batch, seconds)
            return n

        def save(self, file_name):
            self.scorer.save(file_name)

        def load(self, file_name):
            self.scorer.load(file_name)
            self._seen = {}

        # -- inside --
        def _batch(self, task, states):
            if len(states) and isinstance(states[0], State):
                states = [s.state_object for s in states]
            handle = self._task(task)
            if self.features == "cdmpp":
                result = measure.MeasureResult([1.0], 0, "", 0, 0)
                lines = [measure_record.dump_record_to_string(measure.MeasureInput(task, s), result) for s in states]
                return self.scorer.records([x.strip().encode() for x in lines])
            blob = _ffi_api.GetPerStoreFeaturesFromStates(states, task, 5) if len(states) else b""
            if self._later and len(states):
                blob = _convert_packed(blob, len(states), self.scorer.model.n_col)
            return self.scorer.packed(blob, len(states), handle)

        def _task(self, task):
            """What the library is told of a task, once."""
            hw = task.hardware_params
            hw = tuple(int(getattr(hw, k)) for k in HARDWARE) if hw is not None else None
            key = str(task.workload_key), _target_text(task.target), hw
            if key not in self._seen:
                if self.features == "cdmpp" and not self._known:
                    self.scorer.add_tasks("task.pkl", pickle.dumps([task], protocol=4))
                self._seen[key] = self.scorer.task(*key, flop=_number(task.compute_dag.flop_ct))
            return self._seen[key]

    return AnsorModel


def policies(tasks, model, log=None, params=None, verbose=1, seed=None):
    """A SketchPolicy for each task, for TaskScheduler.tune(search_policy=...). As the scheduler ignores load_log_file
    beside a list of policies, an existing `log` is loaded here: states measured before, and into an adapting model."""
    from tvm import auto_scheduler
    callbacks = None
    if log is not None and os.path.exists(log):
        model.replay(log, tasks)
        callbacks = [auto_scheduler.PreloadMeasuredStates(os.fspath(log))]
    return [auto_scheduler.SketchPolicy(t, program_cost_model=model, params=dict(params) if params else None, seed=seed,
                                        verbose=verbose, init_search_callbacks=callbacks) for t in tasks]


# ---- meta_schedule ----
def _first(*names):
    """The first module that is there; an error inside one is not hidden."""
    for name in names:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as e:
            if not e.name or not (name + ".").startswith(e.name + "."):
                raise
    raise ImportError("found none of " + ", ".join(names))


def _attribute(name, *modules):
    for m in modules:
        try:
            return getattr(importlib.import_module(m), name)
        except (ModuleNotFoundError, AttributeError):
            pass
    return None


def _make_meta():
    ms = _first("tvm.s_tir.meta_schedule", "tvm.meta_schedule").__name__  # since 0.24; until 0.23
    base = importlib.import_module(ms + ".cost_model").PyCostModel
    extractor = importlib.import_module(ms + ".feature_extractor").PerStoreFeature
    derived_object = _attribute("derived_object", ms, ms + ".utils", "tvm.ir.utils")  # the last since 0.25
    digest = importlib.import_module(ms + ".utils").shash2hex
    flops = _attribute("estimate_tir_flops", "tvm.s_tir.analysis", "tvm.tir.analysis")

    @derived_object
    class MetaModel(base):
        """A cost model for meta_schedule: cost_model=MetaModel(...). Options: Scorer."""

        def __init__(self, model, device=None, adapt=False, **options):
            self.scorer, self.extractor, self._seen = Scorer(model, device, adapt, **options), extractor(), {}
            n = int(self.extractor.feature_vector_length)
            if n != self.scorer.model.n_col:
                raise CdmppError("EMODEL", "expected rows of %d numbers, TVM makes %d" % (self.scorer.model.n_col, n))
            if not self.scorer.model.takes_rows:
                raise CdmppError("EMODEL", "the model reads loop nests, which meta_schedule's features do not hold")
            self._later = _version() >= (0, 11)  # its curve is another

        def predict(self, context, candidates):
            return self.scorer.score(self._batch(context, candidates))[0]

        def update(self, context, candidates, results):
            if self.scorer.adapt:
                self.scorer.observe(self._batch(context, candidates), [_median(r.run_secs) for r in results])

        def save(self, path):
            self.scorer.save(path)

        def load(self, path):
            self.scorer.load(path)
            self._seen = {}

        def _batch(self, context, candidates):
            rows = [x.numpy() for x in self.extractor.extract_from(context, candidates)]
            if self._later:
                self._convert(rows)
            return self.scorer.rows(rows, self._task(context))

        def _convert(self, rows):
            fit = [i for i, x in enumerate(rows) if x.size and x.ndim == 2 and x.shape[1] == self.scorer.model.n_col
                   and np.isfinite(x).all()]
            if fit:
                curve = as_tvm_09(np.concatenate([rows[i] for i in fit]))
                for i, c in zip(fit, np.split(curve, np.cumsum([len(rows[i]) for i in fit])[:-1])):
                    rows[i] = np.array(rows[i])
                    rows[i][:, CURVE] = c

        def _task(self, context):
            key = str(digest(context.mod)), _target_text(context.target)
            if key not in self._seen:
                self._seen[key] = self.scorer.task(*key, flop=self._flop(context.mod))
            return self._seen[key]

        def _flop(self, mod):
            try:
                return float(flops(mod))
            except Exception:  # dynamic shapes; 0 is unknown
                return 0.0

    return MetaModel


_MADE = {"AnsorModel": _make_ansor, "MetaModel": _make_meta}


def __getattr__(name):
    if name not in _MADE:
        raise AttributeError("module cdmpp_tvm has no attribute " + repr(name))
    made = globals()[name] = _MADE[name]()
    return made
