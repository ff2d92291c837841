"""standin -- the classes of TVM that cdmpp_tvm touches, for machines without TVM.

    install("0.9.0")   tvm.auto_scheduler, tvm.meta_schedule    derived_object in .utils, __str__ among its methods
    install("0.19.0")  the same, a later number
    install("0.26.0")  tvm.s_tir.meta_schedule alone            derived_object in tvm.ir.utils

Modules, names and signatures are those of TVM's sources at the tags v0.9.0, v0.19.0 and v0.26.0. Scores go through
raw memory as they do in C++: a buffer of NaN that the Python side must fill. A state knows the line of the log that
it stands for; FEATURES has its feature rows.
"""
import ctypes
import json
import struct
import sys
import types

import numpy as np

FEATURES = {}  # line of a log without costs -> rows (k,164), or None: TVM cannot lower it


def module(name, **names):
    m = types.ModuleType(name)
    m.__path__ = []
    m.__dict__.update(names)
    sys.modules[name] = m
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], last, m)
    for v in names.values():
        if isinstance(v, type):
            v.__module__, v.__qualname__ = name, v.__name__
    return m


def remove():
    for name in [n for n in sys.modules if n.split(".")[0] in ("tvm", "cdmpp_tvm")]:
        del sys.modules[name]


# ---- objects ----
def _new_object(cls):
    return cls.__new__(cls)


_new_object.__module__ = "tvm.runtime.object"


class Object:
    """Pickles as TVM's do: what was given, nothing added later."""

    def __setstate__(self, state):
        self.given = state
        self.__dict__.update(state if "handle" not in state else {})

    def __reduce__(self):
        return _new_object, (type(self),), self.given


class String(str):
    __slots__ = ["__tvm_object__"]


class Target(Object):
    def __str__(self):
        return self.text


class FloatImm:
    def __init__(self, value):
        self.value = value


class StateObject:
    def __init__(self, line):
        self.line = line


class State:
    def __init__(self, line):
        self.state_object = StateObject(line)


def objects():
    kinds = {}
    for path, names in {"tvm.auto_scheduler.search_task": ("SearchTask", "HardwareParams"),
                        "tvm.auto_scheduler.compute_dag": ("ComputeDAG",), "tvm.ir.container": ("Array", "Map")}.items():
        for n in names:
            kinds.setdefault(path, {})[n] = type(n, (Object,), {})
    return kinds


# ---- auto_scheduler ----
def packed(states, width):
    rows = [FEATURES[s.line] for s in states]
    rows = [r if r is None else np.ascontiguousarray(r[:, :width], "<f4") for r in rows]
    sizes = [0 if r is None else 1 + r.size for r in rows] + [0, 0]
    return bytearray(struct.pack("<%di" % (len(rows) + 3), len(rows), *sizes)
                     + b"".join(b"" if r is None else struct.pack("<f", len(r)) + r.tobytes() for r in rows))


class PythonBasedModel:
    def __init__(self):
        def predict_func(task, states, pointer):
            view = np.ctypeslib.as_array(ctypes.cast(pointer, ctypes.POINTER(ctypes.c_float)), shape=(len(states),))
            view[:] = self.predict(task, states)

        self.handle = predict_func, lambda i, r: self.update(i, r), lambda t, s: self.predict_stages(t, s)


def cpp_predict(model, task, states):
    """PythonBasedModelNode::Predict."""
    buffer = np.full(len(states), np.nan, np.float32)
    model.handle[0](task, states, ctypes.c_void_p(buffer.ctypes.data))
    return buffer


def without_costs(line):
    return json.dumps(json.loads(line)["i"])


class MeasureInput:
    def __init__(self, task, state):
        self.task, self.state = task, state if isinstance(state, StateObject) else state.state_object


class MeasureResult:
    def __init__(self, costs, error_no, error_msg, all_cost, timestamp):
        self.costs, self.error_no, self.error_msg = [FloatImm(c) for c in costs], error_no, error_msg


def dump_record_to_string(inp, res):
    r = [[c.value for c in res.costs], res.error_no, 0, 0]
    return '{"i": %s, "r": %s, "v": "v0.6"}\n' % (inp.state.line, json.dumps(r))


class RecordReader:
    """Its tasks have no compute_dag."""

    def __init__(self, filename):
        self.filename = filename

    def read_lines(self, max_lines=None, skip_lines=0):
        inputs, results = [], []
        for line in open(self.filename):
            i, r = json.loads(line)["i"], json.loads(line)["r"]
            task = types.SimpleNamespace(workload_key=i[0][0], target=i[0][1])
            inputs.append(MeasureInput(task, StateObject(without_costs(line))))
            results.append(MeasureResult(r[0], r[1], "", r[2], r[3]))
        return inputs, results


class PreloadMeasuredStates:
    def __init__(self, filename):
        assert isinstance(filename, str)
        self.filename = filename


class SketchPolicy:
    def __init__(self, task, program_cost_model=None, params=None, seed=None, verbose=1, init_search_callbacks=None):
        assert isinstance(program_cost_model, PythonBasedModel)
        self.task, self.model, self.callbacks, self.params = task, program_cost_model, init_search_callbacks, params


def install_ansor(width):
    a = "tvm.auto_scheduler"
    module(a, SketchPolicy=SketchPolicy, PreloadMeasuredStates=PreloadMeasuredStates)
    module(a + "._ffi_api", GetPerStoreFeaturesFromStates=lambda states, task, max_n_bufs: packed(states, width))
    module(a + ".cost_model")
    module(a + ".cost_model.cost_model", PythonBasedModel=PythonBasedModel)
    module(a + ".loop_state", State=State, StateObject=StateObject)
    module(a + ".measure", MeasureInput=MeasureInput, MeasureResult=MeasureResult)
    module(a + ".measure_record", RecordReader=RecordReader, dump_record_to_string=dump_record_to_string)
    module("tvm.runtime")
    module("tvm.runtime.object", Object=Object, _new_object=_new_object)
    module("tvm.runtime.container", String=String)
    module("tvm.target")
    module("tvm.target.target", Target=Target)
    module("tvm.ir")
    for path, names in objects().items():
        module(path, **names)


# ---- meta_schedule ----
class CostModelHandle:
    """_PyCostModel: gets one function for each of the methods."""

    def __init__(self, *functions):
        self.functions = functions

    def cpp_predict(self, context, candidates):
        buffer = np.full(len(candidates), np.nan)
        view = np.ctypeslib.as_array(ctypes.cast(buffer.ctypes.data, ctypes.POINTER(ctypes.c_double)), shape=buffer.shape)
        result = self.functions[3](context, candidates)
        assert result.dtype == "float64"
        view[:] = result
        return buffer

    def cpp_update(self, context, candidates, results):
        self.functions[2](context, candidates, results)


def derived_object(cls):
    base = cls.__base__
    meta = base._tvm_metadata

    class Derived(meta["cls"]):
        def __init__(self, *args, **kwargs):
            self.__dict__["_inst"] = cls(*args, **kwargs)
            methods = [getattr(self._inst, m) for m in meta["methods"]]
            overridden = [getattr(base, m) is not getattr(cls, m) or m == "__str__" for m in meta["methods"]]
            super().__init__(*[f if o else None for f, o in zip(methods, overridden)])

        def __getattr__(self, name):
            return getattr(self._inst, name)

    return Derived


class Tensor:
    def __init__(self, array):
        self.array = array

    def numpy(self):
        return self.array


def extractor(width):
    class PerStoreFeature:
        def __init__(self, buffers_per_store=5, arith_intensity_curve_num_samples=10, cache_line_bytes=64, extract_workload=False):
            self.feature_vector_length = width

        def extract_from(self, context, candidates):
            rows = [FEATURES[c.line] for c in candidates]
            return [Tensor(np.zeros((0, width)) if r is None else r[:, :width].astype(np.float64)) for r in rows]

    return PerStoreFeature


def install_meta(name, methods, width, **names):
    class PyCostModel:
        _tvm_metadata = {"cls": CostModelHandle, "methods": methods}

        def load(self, path): raise NotImplementedError
        def save(self, path): raise NotImplementedError
        def update(self, context, candidates, results): raise NotImplementedError
        def predict(self, context, candidates): raise NotImplementedError

    module(name, **names)
    module(name + ".utils", shash2hex=lambda mod: "%016x" % (hash(mod) % 2**64), **names)
    module(name + ".cost_model", PyCostModel=PyCostModel)
    module(name + ".feature_extractor", PerStoreFeature=extractor(width))


def install(version, width=164):
    """Make `import tvm` find the stand-in of that version; the plug-in is imported anew."""
    remove()
    module("tvm", __version__=version)
    methods = ["load", "save", "update", "predict"]
    minor = int(version.split(".")[1])
    if minor < 24:
        if minor < 20:
            install_ansor(width)
        install_meta("tvm.meta_schedule", methods + ["__str__"], width, derived_object=derived_object)
        module("tvm.tir")
        module("tvm.tir.analysis", estimate_tir_flops=lambda mod: mod.flop)
    else:
        module("tvm.ir")
        module("tvm.ir.utils", derived_object=derived_object)
        module("tvm.s_tir")
        module("tvm.s_tir.analysis", estimate_tir_flops=lambda mod: mod.flop)
        install_meta("tvm.s_tir.meta_schedule", methods, width)
