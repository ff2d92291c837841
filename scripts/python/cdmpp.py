"""cdmpp -- the calls of cdmpp.h for Python: models, batches to scores, measured seconds back; networks to latencies.

    Model (file) --+
    tasks  --------+--> Scorer -- score(batch)   --> scores, status
    observed ------+             observe(batch, seconds)
                        packed(), rows(), records() make batches; they borrow what they are given
    Network (ONNX file, zoo, graph) -- estimate(models, device) --> rows: seconds, interval, operators
    latency("my.onnx"), latency(torch_module, example_input), llm("config.json", gpu="h100") --> one answer each

(1) Needs numpy and the library: $CDMPP_LIBRARY, beside this file, in the same PREFIX, or where the system looks.
(2) Scores are finite, >= 0, higher is better, one of a call is > 0. A candidate that cannot be lowered gets the
    lowest; an unknown device, task or schedule step is an error (CdmppError) with the library's text.
(3) Any number of Python threads may score with one frozen Scorer, side by side. One that adapts, or was
    given tasks in memory, takes them one at a time.
"""
import contextlib
import ctypes as C
import dataclasses
import json
import math
import os
import re
import shutil
import subprocess
import tempfile
import threading
import warnings

import numpy as np

_RECORDS, _ROWS_F64, _PACKED = 1, 4, 5  # cdmpp_form
# What makes a candidate bad, not the call: these get the lowest score.
_OWN_FAULT = ("EINVALID", "EREJECTED", "ENUMERIC", "ERANGE")


class CdmppError(RuntimeError):
    """What the library says; `code` is the status's name, as "EMODEL"."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


# ---- cdmpp.h ----
class _Err(C.Structure):
    _fields_ = [("code", C.c_int), ("line", C.c_long), ("path", C.c_char * 192), ("key", C.c_char * 96),
                ("msg", C.c_char * 224), ("src", C.c_char_p), ("src_line", C.c_int)]


class _TaskInfo(C.Structure):
    _fields_ = [("size", C.c_size_t), ("workload_key", C.c_char_p), ("target", C.c_char_p),
                ("hardware", C.POINTER(C.c_int64)), ("flop", C.c_double)]


class _Options(C.Structure):
    _fields_ = [("size", C.c_size_t), ("device", C.c_char_p), ("profile", C.c_char_p), ("nearest_device", C.c_int),
                ("devices_file", C.c_char_p), ("nthreads", C.c_int), ("max_rows", C.c_size_t), ("observer", C.c_void_p),
                ("cache", C.c_size_t)]


class _Text(C.Structure):
    _fields_ = [("p", C.c_char_p), ("n", C.c_size_t)]


class _Batch(C.Structure):
    _fields_ = [("size", C.c_size_t), ("form", C.c_int), ("n", C.c_size_t), ("task", C.c_void_p),
                ("text", C.POINTER(_Text)), ("data", C.c_void_p), ("len", C.c_size_t), ("n_col", C.c_size_t),
                ("row_ptr", C.c_void_p)]


class _Result(C.Structure):
    _fields_ = [("size", C.c_size_t)] + [(k, C.c_void_p) for k in (
        "score", "score_f32", "seconds", "low", "high", "rel_std", "flags", "status", "error", "reason")]


class _NetworkOptions(C.Structure):
    _fields_ = [("size", C.c_size_t), ("batch", C.c_int64), ("input_size", C.c_int), ("training", C.c_int), ("layout", C.c_char_p)] + [
        f for k in ("dim", "input", "tasks") for f in ((k, C.POINTER(C.c_char_p)), ("n_" + k, C.c_size_t))]


class _EstimateOptions(C.Structure):
    _fields_ = [("size", C.c_size_t), ("model", C.POINTER(C.c_char_p)), ("n_model", C.c_size_t), ("device", C.c_char_p),
                ("devices_file", C.c_char_p), ("target", C.c_char_p), ("nearest_device", C.c_int),
                ("records", C.POINTER(C.c_char_p)), ("n_records", C.c_size_t), ("schedules", C.POINTER(C.c_char_p)),
                ("n_schedules", C.c_size_t), ("trials", C.c_int), ("seed", C.c_int), ("cache", C.c_char_p), ("nthreads", C.c_int),
                ("given_times", C.c_int), ("allow_missing", C.c_int), ("workers", C.c_int), ("level", C.c_double)]


class _EstimateTotal(C.Structure):
    _fields_ = [("size", C.c_size_t), ("network", C.c_char_p), ("device", C.c_char_p), ("batch", C.c_int64), ("status", C.c_int),
                ("error", C.c_char_p), ("seconds", C.c_double), ("low", C.c_double), ("high", C.c_double),
                ("missing_share", C.c_double), ("unlike_share", C.c_double), ("peak_bytes", C.c_int64), ("n_node", C.c_size_t)]


class _EstimateOp(C.Structure):
    _fields_ = [("size", C.c_size_t), ("name", C.c_char_p), ("type", C.c_char_p), ("device", C.c_char_p), ("source", C.c_char_p),
                ("schedule", C.c_char_p), ("repeat", C.c_int64), ("start", C.c_double), ("end", C.c_double), ("seconds", C.c_double),
                ("low", C.c_double), ("high", C.c_double), ("critical", C.c_int), ("flags", C.c_uint32), ("reason", C.c_uint32), ("unlike", C.c_char_p)]


# Bits of CDMPP_REASON_*, the first is 1.
REASONS = ("range of features", "dtype", "operator kind", "intrinsic", "threads", "target feature", "device", "peak of the device")
_P, _S, _Z, _I = C.c_void_p, C.c_char_p, C.c_size_t, C.c_int
_PP, _E = C.POINTER(C.c_void_p), C.POINTER(_Err)
_CALLS = {  # name: result, arguments; those that end in _E return a status
    "err_format": (_S, [_E, _S, _Z]), "status_name": (_S, [_I]), "version": (_S, []), "abi_version": (_I, []),
    "tasks_new": (_I, [_PP, _E]), "tasks_load": (_I, [_P, _S, _E]), "tasks_add": (_I, [_P, _S, _S, _Z, _E]),
    "tasks_warning": (C.POINTER(_Err), [_P, _Z]), "tasks_free": (None, [_P]), "task_new": (_I, [_P, C.POINTER(_TaskInfo), _PP, _E]), "task_flop": (C.c_double, [_P]),
    "task_free": (None, [_P]),
    "model_load": (_I, [_S, _PP, _E]), "model_info": (_S, [_P]), "model_n_device": (_Z, [_P]),
    "model_device": (_S, [_P, _Z]), "model_n_col": (_Z, [_P]), "model_takes_rows": (_I, [_P]), "model_free": (None, [_P]),
    "observer_new": (_I, [_P, _PP, _E]), "observer_count": (_Z, [_P]), "observer_free": (None, [_P]),
    "observer_write": (_I, [_P, _S, _Z, C.POINTER(_Z), _E]), "observer_read": (_I, [_P, _S, _Z, _PP, _E]),
    "context_new": (_I, [_P, _P, C.POINTER(_Options), _PP, _E]), "context_device": (_S, [_P]), "context_free": (None, [_P]),
    "score": (_I, [_P, C.POINTER(_Batch), C.POINTER(_Result), _E]),
    "observe": (_I, [_P, C.POINTER(_Batch), _P, _P, _E]),
    "network_load": (_I, [_S, C.POINTER(_NetworkOptions), _PP, _E]), "network_load_graph": (_I, [_S, C.POINTER(_NetworkOptions), _PP, _E]),
    "network_count": (_Z, [_P]), "network_name": (_S, [_P, _Z]), "network_free": (None, [_P]),
    "estimate_network": (_I, [_P, C.POINTER(_EstimateOptions), _PP, _E]), "estimate_count": (_Z, [_P]), "estimate_free": (None, [_P]),
    "estimate_row": (_I, [_P, _Z, C.POINTER(_EstimateTotal), _E]), "estimate_node": (_I, [_P, _Z, _Z, C.POINTER(_EstimateOp), _E]),
    "estimate_json": (_I, [_P, _I, _S, _Z, C.POINTER(_Z), _E]),
    "operators_open": (_I, [_S, _P, _PP, _E]), "operators_free": (None, [_P]), "operators_rows": (_Z, [_P]), "operators_skipped": (_Z, [_P]),
    "operators_ask": (_I, [_P, _P, _Z, _P, _E]),
    "span_begin": (_I, [_S, _PP, _E]), "span_end": (_I, [_P, _P, _E]),
    "partition_network": (_I, [_S, _P, _PP, _E]), "partition_json": (_I, [_P, _S, _Z, C.POINTER(_Z), _E]), "partition_free": (None, [_P]),
}
_lib = None


def _find():
    if os.environ.get("CDMPP_LIBRARY"):
        return os.environ["CDMPP_LIBRARY"]
    here = os.path.dirname(os.path.abspath(__file__))
    for folder in (here, os.path.join(here, "cdmpp.libs"), os.path.join(here, "..", "..", "..", "lib")):
        path = os.path.join(folder, "libcdmpp.so.0")
        if os.path.exists(path):
            return path
    return "libcdmpp.so.0"


def library():
    """The library, loaded once; raises OSError where there is none, ImportError where it is too old."""
    global _lib
    if _lib is None:
        try:
            lib = C.CDLL(_find())
        except OSError as e:
            raise OSError("%s; CDMPP_LIBRARY names the library, in a checkout build/release/libcdmpp.so" % e) from None
        for name, (result, args) in _CALLS.items():
            try:
                f = getattr(lib, "cdmpp_" + name)
            except AttributeError:
                raise ImportError("%s has no cdmpp_%s: it is older than this file" % (_find(), name)) from None
            f.restype, f.argtypes = result, args
        _lib = lib
    return _lib


def _call(name, *args):
    """A call that returns a status: raises CdmppError with its text."""
    err = _Err()
    status = getattr(library(), "cdmpp_" + name)(*args, C.byref(err))
    if status:
        raise _error(status, err)


def _error(status, err):
    return CdmppError(_status_name(status), _text(err))


def _text(err):
    text = C.create_string_buffer(768)
    library().cdmpp_err_format(C.byref(err), text, len(text))
    return text.value.decode(errors="replace")


def _status_name(status):
    return library().cdmpp_status_name(int(status)).decode()


def _bytes(text):
    return None if text is None else os.fsencode(text)


def _sized(kind, **fields):
    return kind(size=C.sizeof(kind), **fields)


class _Handle:
    """An opaque pointer, what it borrows from, and its end."""

    def __init__(self, kind, call, *args, keep=()):
        self.p, self._kind, self._keep = C.c_void_p(), kind, keep
        _call(call, *args, C.byref(self.p))

    def __del__(self):
        if getattr(self, "p", None) and _lib:
            getattr(_lib, "cdmpp_%s_free" % self._kind)(self.p)


class Model:
    """A model file: read once, for any number of threads."""

    def __init__(self, path):
        lib = library()
        self.path = os.fspath(path)
        self.handle = _Handle("model", "model_load", _bytes(path))
        self.info = json.loads(lib.cdmpp_model_info(self.handle.p))
        self.n_col = lib.cdmpp_model_n_col(self.handle.p)
        self.takes_rows = bool(lib.cdmpp_model_takes_rows(self.handle.p))
        self.devices = [lib.cdmpp_model_device(self.handle.p, i).decode() for i in range(lib.cdmpp_model_n_device(self.handle.p))]


class Scorer:
    """Batches to scores, and measured seconds back; knows nothing of TVM.

    device: of every candidate (None: -model= of its target, or the model's only one); nearest: an unknown device
    is taken for the most similar that the model knows; tasks: task files for records; threads: of the library.
    adapt: measured results correct the scores; observed: what an earlier `save` wrote."""

    def __init__(self, model, device=None, adapt=False, nearest=False, devices_file=None, profile=None, threads=1, tasks=(),
                 observed=None):
        self.model = model if isinstance(model, Model) else Model(model)
        self.adapt, self._local, self._lock = adapt or observed is not None, threading.local(), threading.Lock()
        self._alone = self.adapt
        self._options = dict(device=_bytes(device), profile=_bytes(profile), nearest_device=int(nearest),
                             devices_file=_bytes(devices_file), nthreads=threads)
        self._tasks = _Handle("tasks", "tasks_new")
        self._warned = 0
        for path in [tasks] if isinstance(tasks, (str, os.PathLike)) else tasks:
            _call("tasks_load", self._tasks.p, _bytes(path))
        self._warn()
        self._observer = _Handle("observer", "observer_new", self.model.handle.p, keep=self.model) if self.adapt else None
        self._context()  # an unknown device is an error now
        if observed is not None:
            self.load(observed)

    def add_tasks(self, name, data):
        """Task definitions from bytes in memory, between two batches: threads take turns from now on."""
        with self._lock:
            self._alone = True
            _call("tasks_add", self._tasks.p, _bytes(name), data, len(data))
            self._warn()
            self._local = threading.local()

    def _warn(self):
        """Definitions that are not used, because an earlier one of the same key differs."""
        while True:
            unused = library().cdmpp_tasks_warning(self._tasks.p, self._warned)
            if not unused:
                return
            self._warned += 1
            warnings.warn(_text(unused.contents), stacklevel=3)

    def task(self, key, target=None, hardware=None, flop=0.0):
        """What rows and packed features do not say. None is fine where it is unknown."""
        hw = (C.c_int64 * 8)(*hardware) if hardware is not None else None
        info = _sized(_TaskInfo, workload_key=key.encode(), target=None if target is None else target.encode(),
                      hardware=hw, flop=flop)
        return _Handle("task", "task_new", None, C.byref(info))

    def packed(self, blob, n, task=None):
        """TVM's byte array of n candidates, as it is."""
        data = np.frombuffer(blob, np.uint8)
        return self._batch(_PACKED, n, [data], task, data=data.ctypes.data, len=data.size)

    def rows(self, features, task=None):
        """A list of (k,164) arrays; k may be 0."""
        features = [np.asarray(f) for f in features]
        for i, f in enumerate(features):
            if f.size and (f.ndim != 2 or f.shape[1] != self.model.n_col):
                raise CdmppError("EMODEL", "candidate %d: expected rows of %d numbers, found shape %s"
                                 % (i, self.model.n_col, f.shape))
        row_ptr = np.zeros(len(features) + 1, np.int64)
        row_ptr[1:] = np.cumsum([len(f) if f.size else 0 for f in features])
        some = [f for f in features if f.size] or [np.zeros((1, self.model.n_col))]
        data = np.ascontiguousarray(np.concatenate(some), np.float64)
        return self._batch(_ROWS_F64, len(features), [data, row_ptr], task, data=data.ctypes.data, n_col=self.model.n_col,
                           row_ptr=row_ptr.ctypes.data)

    def records(self, lines):
        """Lines of a measure log, as bytes."""
        text = (_Text * len(lines))(*[(x, len(x)) for x in lines])
        return self._batch(_RECORDS, len(lines), [lines], None, text=text)

    def score(self, batch, dtype=np.float64):
        """Scores (n) of a batch, and the status of each candidate: 0 is scored."""
        out, status = np.zeros(batch.n, dtype), np.zeros(batch.n, np.intc)
        if batch.n:
            where = "score" if out.dtype == np.float64 else "score_f32"
            with self._turn():
                self._run(batch, status=status.ctypes.data, **{where: out.ctypes.data})
                self._check(batch, status)
            if not (np.isfinite(out).all() and (out >= 0).all() and out.max() > 0):
                raise CdmppError("ENUMERIC", "scores are not finite, >= 0 and one > 0")
        return out, status

    def seconds(self, batch):
        """Predicted seconds (n); infinity where there is no answer."""
        out, status = np.zeros(batch.n), np.zeros(batch.n, np.intc)
        if batch.n:
            with self._turn():
                self._run(batch, status=status.ctypes.data, seconds=out.ctypes.data)
                self._check(batch, status)
        return out

    def predict(self, batch):
        """A dict of arrays (n): seconds, low, high, rel_std, NaN where there is no answer, and a list of reasons, a tuple of names for
        each candidate: why it is unlike what the model was trained on; () where it is like it, or nobody can tell."""
        out, reason = {k: np.full(batch.n, np.nan) for k in ("seconds", "low", "high", "rel_std")}, np.zeros(batch.n, np.uint32)
        status = np.zeros(batch.n, np.intc)
        if batch.n:
            with self._turn():
                self._run(batch, status=status.ctypes.data, reason=reason.ctypes.data, **{k: v.ctypes.data for k, v in out.items()})
                self._check(batch, status)
        out["seconds"][status != 0] = np.nan
        out["reasons"] = [tuple(name for bit, name in enumerate(REASONS) if r >> bit & 1) for r in reason.tolist()]
        return out

    def observe(self, batch, seconds):
        """Measured seconds (n) of a batch, NaN where the measurement failed; how many were entered."""
        if not self.adapt or not batch.n:
            return 0
        seconds, status = np.ascontiguousarray(seconds, np.float64), np.zeros(batch.n, np.intc)
        if seconds.shape != (batch.n,):
            raise ValueError("%d candidates, seconds of shape %s" % (batch.n, seconds.shape))
        with self._turn():
            _call("observe", self._context().p, C.byref(batch), seconds.ctypes.data, status.ctypes.data)
            self._check(batch, status)
        return int((status == 0).sum())

    def count(self):
        """Measured programs that are kept."""
        return library().cdmpp_observer_count(self._observer.p) if self._observer else 0

    def save(self, path):
        """What was observed, as JSON; of a frozen model the model file."""
        if not self.adapt:
            with open(self.model.path, "rb") as f:
                data = f.read()
        else:
            with self._lock:
                n = C.c_size_t()
                _call("observer_write", self._observer.p, None, 0, C.byref(n))
                text = C.create_string_buffer(n.value + 1)
                _call("observer_write", self._observer.p, text, len(text), C.byref(n))
            data = text.raw[:n.value]
        with open(os.fspath(path) + ".new", "wb") as f:
            f.write(data)
        os.replace(os.fspath(path) + ".new", path)

    def load(self, path):
        """What `save` wrote. Not while another thread scores."""
        with open(path, "rb") as f:
            data = f.read()
        if data[:8] == b"CDMPPMDL":
            self.model = Model(path)
            observer = _Handle("observer", "observer_new", self.model.handle.p, keep=self.model) if self.adapt else None
        else:
            m = self.model
            observer = _Handle("observer", "observer_read", m.handle.p, data, len(data), keep=m)
            self.adapt = self._alone = True
        self._observer, self._local = observer, threading.local()
        self._context()

    # -- inside --
    def _batch(self, form, n, keep, task, **fields):
        b = _sized(_Batch, form=form, n=n, task=task.p if task else None, **fields)
        b.keep = keep, task  # alive as long as the batch
        return b

    def _turn(self):
        """Alone where results change what others see; side by side otherwise."""
        return self._lock if self._alone else contextlib.nullcontext()

    def _context(self):
        c = getattr(self._local, "context", None)
        if c is None:
            options = _sized(_Options, observer=self._observer.p if self._observer else None, **self._options)
            c = _Handle("context", "context_new", self.model.handle.p, self._tasks.p, C.byref(options),
                        keep=(self.model, self._tasks, self._observer))
            self._local.context = c
        return c

    def _run(self, batch, **fields):
        _call("score", self._context().p, C.byref(batch), C.byref(_sized(_Result, **fields)))

    def _check(self, batch, status):
        """Raise for a candidate that was not scored for another reason than its own."""
        names = {s: _status_name(s) for s in np.unique(status) if s}
        bad = [i for i in np.flatnonzero(status) if names[status[i]] not in _OWN_FAULT] if names else []
        if bad:
            errors = (_Err * batch.n)()
            self._run(batch, error=C.addressof(errors))
            e = _error(status[bad[0]], errors[bad[0]])
            raise CdmppError(e.code, "candidate %d: %s" % (bad[0], e))


def _list(fields, name, values):
    """Fields `name` and `n_name` of a struct of options."""
    values = [values] if isinstance(values, (str, os.PathLike)) else list(values)
    fields[name], fields["n_" + name] = (C.c_char_p * len(values))(*map(_bytes, values)), len(values)


def _row(struct):
    """A filled struct as a dict: texts as str, the status as its name."""
    row = {name: getattr(struct, name) for name, _ in struct._fields_[1:]}
    row = {k: v.decode(errors="replace") if isinstance(v, bytes) else v for k, v in row.items()}
    if "status" in row:
        row["status"] = _status_name(row["status"])
    return row


class Network:
    """What to estimate: an ONNX file or a name of the zoo, or with graph=True a graph file (docs/reference/netgraph.md)."""

    def __init__(self, source, graph=False, batch=0, input_size=0, training=False, layout=None, dim=(), input=(), tasks=()):
        o = dict(batch=batch, input_size=input_size, training=int(training), layout=_bytes(layout))
        for name, values in (("dim", dim), ("input", input), ("tasks", tasks)):
            _list(o, name, values)
        self.handle = _Handle("network", "network_load_graph" if graph else "network_load", _bytes(source), C.byref(_sized(_NetworkOptions, **o)))
        count = library().cdmpp_network_count(self.handle.p)
        self.names = [library().cdmpp_network_name(self.handle.p, i).decode() for i in range(count)]

    def estimate(self, models=(), device=None, devices_file=None, target=None, nearest=False, records=(), schedules=(), trials=0,
                 seed=0, cache=None, threads=1, given_times=False, allow_missing=False, workers=0, level=0.0):
        """Latency on each device; models: files; device: "v100" or "v100,k80". The other words are those of cdmpp-replay."""
        o = dict(device=_bytes(device), devices_file=_bytes(devices_file), target=_bytes(target), nearest_device=int(nearest), trials=trials,
                 seed=seed, cache=_bytes(cache), nthreads=threads, given_times=int(given_times), allow_missing=int(allow_missing),
                 workers=workers, level=level)
        for name, values in (("model", models), ("records", records), ("schedules", schedules)):
            _list(o, name, values)
        return Estimate(_Handle("estimate", "estimate_network", self.handle.p, C.byref(_sized(_EstimateOptions, **o))))


class Estimate:
    """Rows of Network.estimate, one for each network and device: dicts with the names of cdmpp_estimate_total."""

    def __init__(self, handle):
        self.handle, self.rows = handle, []
        for i in range(library().cdmpp_estimate_count(handle.p)):
            t = _sized(_EstimateTotal)
            _call("estimate_row", handle.p, i, C.byref(t))
            self.rows.append(_row(t))

    def nodes(self, i=0):
        """The operators of row i: dicts with the names of cdmpp_estimate_op."""
        out = []
        for k in range(self.rows[i]["n_node"]):
            op = _sized(_EstimateOp)
            _call("estimate_node", self.handle.p, i, k, C.byref(op))
            out.append(_row(op))
        return out

    def json(self, nodes=False):
        """The whole as cdmpp-replay --json prints it, with nodes as with --ops."""
        n = C.c_size_t()
        _call("estimate_json", self.handle.p, int(nodes), None, 0, C.byref(n))
        text = C.create_string_buffer(n.value + 1)
        _call("estimate_json", self.handle.p, int(nodes), text, len(text), C.byref(n))
        return json.loads(text.value)


# ---- partitions ----
_TEXTS = C.POINTER(C.c_char_p)


class _SpanCost(C.Structure):
    _fields_ = [("size", C.c_size_t), ("seconds", C.c_double), ("cpu_seconds", C.c_double), ("heap_peak", C.c_int64), ("heap_live", C.c_int64),
                ("heap_total", C.c_int64), ("device_peak", C.c_int64), ("device_live", C.c_int64), ("missing", C.c_char_p)]


class span:
    """What a part of the program costs:  with cdmpp.span("conv") as s: ...  then s.seconds, s.heap_peak and so on.

    seconds, cpu_seconds: wall, and processor time of all threads. heap_peak, heap_live, heap_total, device_peak, device_live: bytes above
    what was live at the begin (the most at one time, what is left, what was asked for; device: OpenCL buffers). They are None
    unless the program was started by `cdmpp-profile wrap`, and `missing` says why. As in cdmpp.h."""

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        self._p = C.c_void_p()
        _call("span_begin", _bytes(self.name), C.byref(self._p))
        return self

    def __exit__(self, *_):
        cost = _sized(_SpanCost)
        _call("span_end", self._p, C.byref(cost))
        for name, _ in _SpanCost._fields_[1:-1]:
            value = getattr(cost, name)
            setattr(self, name, None if value == -(1 << 63) else value)
        self.missing = cost.missing.decode()


class _PartitionOptions(C.Structure):
    _fields_ = [("size", C.c_size_t), ("model", _TEXTS), ("n_model", C.c_size_t), ("devices", C.c_char_p), ("machine", C.c_char_p),
                ("devices_file", C.c_char_p), ("as_", _TEXTS), ("n_as", C.c_size_t), ("batch", C.c_int64), ("input_size", C.c_int),
                ("layout", C.c_char_p), ("schedules", _TEXTS), ("n_schedules", C.c_size_t), ("records", _TEXTS),
                ("n_records", C.c_size_t), ("trials", C.c_int), ("seed", C.c_int), ("nthreads", C.c_int), ("whole", C.c_int),
                ("dims", C.c_char_p), ("granules", C.c_int), ("rules", C.c_char_p)]


def _texts(value):
    """A text, a path or a list of these as (char *[], n)."""
    value = [] if value is None else [value] if isinstance(value, (str, bytes, os.PathLike)) else list(value)
    return (C.c_char_p * len(value))(*[_bytes(v) for v in value]), len(value)


def partition(network, model=None, as_device=None, schedules=None, records=None, whole=False, **options):
    """Which device runs which part of a network: the `result` of cdmpp-partition --json as a dict.

    `network` is an ONNX file or a name of the zoo; model, as_device, schedules, records: one or a list. Other options are the fields of
    cdmpp_partition_options: devices, machine, devices_file, batch, input_size, layout, trials, seed, nthreads, dims, granules, rules."""
    lists = {}
    for name, value in (("model", model), ("as_", as_device), ("schedules", schedules), ("records", records)):
        lists[name], lists["n_" + name.rstrip("_")] = _texts(value)
    fields = {k: v if isinstance(v, int) else _bytes(v) for k, v in options.items()}
    o = _sized(_PartitionOptions, whole=int(whole), **lists, **fields)
    handle = _Handle("partition", "partition_network", _bytes(network), C.byref(o))
    n = C.c_size_t()
    _call("partition_json", handle.p, None, 0, C.byref(n))
    text = C.create_string_buffer(n.value + 1)
    _call("partition_json", handle.p, text, len(text), C.byref(n))
    return json.loads(text.value)


# ---- one call from a model to its latency ----
@dataclasses.dataclass(frozen=True)
class Latency:
    """Seconds of one pass of a network on a device, with an interval. Compiled by cdmpp with schedules it chose, one core of a
    processor unless the device says otherwise; not what ONNX Runtime, PyTorch or TensorRT take."""

    network: str
    device: str       # whose times these are: a stand-in where nothing was measured on the asked one
    batch: int
    seconds: float
    low: float        # 90 % interval unless `level` was given; NaN: no experiment tells how far off the answer is
    high: float
    memory_bytes: int
    unlike: float     # 0 to 1: share of the time by programs unlike those of the training
    stand_in: str     # device of the model whose times are taken for this one's; "": the model was trained on it
    detail: dict = dataclasses.field(repr=False)  # the row of Estimate


@dataclasses.dataclass(frozen=True)
class LLM:
    """A language model served on a GPU: what `cdmpp-replay --llm` answers. Seconds; NaN where there is none."""

    gpu: str
    tp: int
    concurrency: float
    ttft: float       # to the first token
    ttft_low: float   # 90 % interval
    ttft_high: float
    tpot: float       # each further token
    tpot_low: float
    tpot_high: float
    tokens_per_second: float
    refused: str      # of several combinations "": answered; else why not, and the numbers are NaN
    detail: dict = dataclasses.field(repr=False)  # the answer of the command


def _command(name):
    """The path of a command: beside the library, in bin of its prefix, or in PATH."""
    folder = os.path.dirname(os.path.realpath(_find()))
    for place in (folder, os.path.join(folder, "bin"), os.path.join(folder, "..", "bin"), os.path.join(folder, "..", "..", "bin")):
        path = os.path.join(place, name)
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    found = shutil.which(name)
    if not found:
        raise CdmppError("EIO", "%s is neither beside the library nor in PATH" % name)
    return found


def _export(module, example, path):
    """A torch module as an ONNX file, by the user's own torch."""
    import torch

    args = example if isinstance(example, tuple) else (example,)
    training = module.training
    module.eval()
    try:
        with torch.no_grad():
            torch.onnx.export(module, args, path)
    finally:
        module.train(training)


def _of_user(text, made, given):
    """A message about the temporary file `made` (None: there is none) is one about what the user gave."""
    return text.replace(made, given) if made else text


@contextlib.contextmanager
def _named(made, given):
    """The same of an error within."""
    try:
        yield
    except CdmppError as e:
        if not made or made not in str(e):
            raise
        raise CdmppError(e.code, _of_user(str(e), made, given)) from None


def latency(source, example_input=None, device=None, batch=0, level=0.0, models=(), threads=0, **options):
    """How long a network takes: `source` is an ONNX file, a network that cdmpp knows ("resnet-50"), or a torch module with an
    `example_input` (a tensor, or a tuple of them). device: "h100", "zen4,v100"; None: this machine. Further words are those of
    Network.estimate. A Latency; a list of them where several devices were asked. Raises CdmppError."""
    if isinstance(device, (list, tuple)):
        device = ",".join(device)
    made, given = None, ""
    with tempfile.TemporaryDirectory() as folder:
        if not isinstance(source, (str, os.PathLike)):
            if not callable(source):
                raise CdmppError("EUSAGE", "expected a file, a name or a torch module, found %r" % (source,))
            if example_input is None:
                raise CdmppError("EUSAGE", "a torch module needs example_input")
            made, given = os.path.join(folder, type(source).__name__ + ".onnx"), "the torch module " + type(source).__name__
            _export(source, example_input, made)
            source = made
        elif example_input is not None:
            raise CdmppError("EUSAGE", "example_input is for a torch module, and %s is a file or a name: device=%r?" % (source, example_input))
        if os.path.basename(os.fspath(source)) == "config.json" or os.path.isdir(source):
            raise CdmppError("EUSAGE", "%s is a language model: cdmpp.llm(%r, gpu=\"h100\")" % (source, os.fspath(source)))
        with _named(made, given):
            e = Network(os.fspath(source), batch=batch).estimate(models, device, level=level, threads=threads or os.cpu_count() or 1, **options)
    said = e.json()
    for text in said.get("warnings", ()):
        warnings.warn(_of_user(text, made, given), stacklevel=2)
    answers = said.get("result", said)["estimates"]
    with _named(made, given):
        out = [_latency(row, answer.get("stand_in") or "") for row, answer in zip(e.rows, answers)]
    return out[0] if len(out) == 1 else out


def _latency(row, stand_in):
    if row["status"] != "OK":
        raise CdmppError(row["status"], row["error"])
    return Latency(row["network"], row["device"], row["batch"], row["seconds"], row["low"], row["high"], row["peak_bytes"], row["unlike_share"], stand_in, row)


def llm(config, gpu, tp=1, isl=1024, osl=128, concurrency=1, stack=None, model=None, measured=None, **options):
    """TTFT, TPOT and throughput of a language model from its config.json (a path, or a dict of its fields). gpu, tp and concurrency may
    be lists: each combination is an answer. Further words are options of `cdmpp-replay --llm` (dp=2, kv_dtype="fp8"). An LLM, or a list
    of them. What the command warns of is a warning here. Raises CdmppError: also where the only combination is refused."""
    lists = {"gpu": gpu, "tp": tp, "concurrency": concurrency}
    texts = {k: v if isinstance(v, str) else ",".join(map(str, v)) if isinstance(v, (list, tuple)) else str(v) for k, v in lists.items()}
    argv = [_command("cdmpp-replay"), "--json", "--isl", str(isl), "--osl", str(osl)]
    words = dict(texts, stack=stack, cost_model=model, **options)
    argv += [w for k, v in words.items() if v is not None for w in ("--" + k.replace("_", "-"), str(v))]
    made = None
    with tempfile.TemporaryDirectory() as folder:
        if isinstance(config, dict):
            made = os.path.join(folder, "config.json")
            with open(made, "w", encoding="utf-8") as f:
                json.dump(config, f)
            config = made
        argv += ["--llm", os.fspath(config)] + (["--measured", os.fspath(measured)] if measured else [])
        p = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if p.returncode not in (0, 3) or not p.stdout:
        raise _refused(_of_user(p.stderr, made, "config"))
    said = json.loads(_of_user(p.stdout, made, "config"))
    for text in said.get("warnings", ()):
        warnings.warn(text, stacklevel=2)
    out = [_llm(a) for a in said["result"]["answers"]]
    return out[0] if len(out) == 1 else out


def _llm(a):
    def number(name):
        v = a.get(name)
        return math.nan if v is None else v

    names = ("ttft_s", "ttft_low_s", "ttft_high_s", "tpot_s", "tpot_low_s", "tpot_high_s", "tokens_s")
    return LLM(a["gpu"], a["tp"], a["concurrency"], *map(number, names), a.get("refused") or "", a)


def _refused(text):
    """The error of a command as an exception: its last line is "cdmpp-replay: error: what is wrong [ECODE]"."""
    lines = [line for line in text.splitlines() if re.match(r"cdmpp-[a-z]+: ", line)]
    found = re.match(r"cdmpp-[a-z]+: (?:error: )?(.*?)(?: \[(E[A-Z]+)\])?$", lines[-1]) if lines else None
    return CdmppError(found[2] or "EUSAGE", found[1]) if found else CdmppError("EIO", text.strip()[-400:] or "cdmpp-replay said nothing")


def pandas(answers):
    """A DataFrame of Latency or LLM, a row each, without `detail`. Needs pandas."""
    import pandas as pd

    rows = answers if isinstance(answers, list) else [answers]
    return pd.DataFrame([{k: v for k, v in dataclasses.asdict(r).items() if k != "detail"} for r in rows])
