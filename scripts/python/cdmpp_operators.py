"""cdmpp_operators -- latencies of operators of language models, from kind, sizes, types, library and GPU (docs/reference/llm-operators.md).

    Operators("llm.cdmpp", device="h100", measured="tables/h100")
        .ask(op="gemm", dtype="fp8", m=1024, n=4096, k=4096)   -> Answer(seconds, low, high, how, new, ...)
        .ask_many([{"op": ..}, ..])                            -> [Answer or CdmppError, ..] in their order

(1) Names and values are those of a table's columns; None is as if it were not there.
(2) Any number of threads may ask one object. The answers are those of cdmpp-predict --operators.
"""
import ctypes as C
import math
from typing import NamedTuple, Optional, Tuple

import cdmpp
from cdmpp import CdmppError

HOWS = ("measured", "interpolated", "predicted")
NEWS = ("device", "stack", "kernel", "dtype", "size", "vendor", "alike", "operator")  # bits of CDMPP_OPERATOR_NEW_*, CDMPP_OPERATOR_ALIKE


class Answer(NamedTuple):
    """seconds; low to high: the interval, None where nobody knows it; new: what the training has not seen; estimate and bound: the analytic time, the lower bound."""
    seconds: float
    low: Optional[float]
    high: Optional[float]
    how: str
    new: Tuple[str, ...]
    estimate: float
    bound: float


class _Options(C.Structure):
    _fields_ = [("size", C.c_size_t), ("device", C.c_char_p), ("devices_file", C.c_char_p), ("measured", C.POINTER(C.c_char_p)),
                ("n_measured", C.c_size_t), ("level", C.c_double)]


class _Value(C.Structure):
    _fields_ = [("name", C.c_char_p), ("text", C.c_char_p), ("number", C.c_double)]


class _Operator(C.Structure):
    _fields_ = [("value", C.POINTER(_Value)), ("n", C.c_size_t)]


_COLUMNS = (("seconds", C.c_double), ("low", C.c_double), ("high", C.c_double), ("estimate", C.c_double), ("bound", C.c_double),
            ("how", C.c_int), ("news", C.c_uint32), ("status", C.c_int), ("error", cdmpp._Err))


class _Result(C.Structure):
    _fields_ = [("size", C.c_size_t)] + [(name, C.POINTER(kind)) for name, kind in _COLUMNS]


def _value(name, value):
    if isinstance(value, str):
        return _Value(name.encode(), value.encode(), math.nan)
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        raise TypeError("%s: expected a number or a text, found %r" % (name, value))
    return _Value(name.encode(), None, float(value))


class Operators:
    """A model and what was measured. measured: tables or folders, one or a list; device: of questions that name none; level: of the intervals."""

    def __init__(self, model, device=None, measured=(), devices_file=None, level=0.9):
        texts, n = cdmpp._texts(measured)
        o = cdmpp._sized(_Options, device=cdmpp._bytes(device), devices_file=cdmpp._bytes(devices_file), measured=texts, n_measured=n, level=level)
        self._handle = cdmpp._Handle("operators", "operators_open", cdmpp._bytes(model), C.byref(o))
        self.rows = cdmpp.library().cdmpp_operators_rows(self._handle.p)
        self.skipped = cdmpp.library().cdmpp_operators_skipped(self._handle.p)

    def ask_many(self, operators):
        """An Answer for each, or the CdmppError that says why there is none."""
        lists = [[_value(k, v) for k, v in one.items() if v is not None] for one in operators]
        n = len(lists)
        values = [(_Value * len(one))(*one) for one in lists]
        asked = (_Operator * n)(*[_Operator(v, len(v)) for v in values])
        got = {name: (kind * n)() for name, kind in _COLUMNS}
        result = cdmpp._sized(_Result, **got)
        cdmpp._call("operators_ask", self._handle.p, asked, n, C.byref(result))
        return [self._answer(got, i) for i in range(n)]

    def ask(self, **operator):
        """The Answer for one; raises CdmppError."""
        answer, = self.ask_many([operator])
        if isinstance(answer, CdmppError):
            raise answer
        return answer

    @staticmethod
    def _answer(got, i):
        if got["status"][i]:
            return cdmpp._error(got["status"][i], got["error"][i])
        low, high = got["low"][i], got["high"][i]
        known = not math.isnan(low)
        return Answer(got["seconds"][i], low if known else None, high if known else None, HOWS[got["how"][i]],
                      tuple(name for k, name in enumerate(NEWS) if got["news"][i] >> k & 1), got["estimate"][i], got["bound"][i])
