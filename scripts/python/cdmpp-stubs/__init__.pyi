"""Types of the module cdmpp (PEP 561). tests/python/test_stubs.py compares them with the module."""
import os
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple, Union

import numpy as np

_Path = Union[str, bytes, os.PathLike[str]]
_Paths = Union[_Path, Sequence[_Path]]

class CdmppError(RuntimeError):
    code: str
    def __init__(self, code: str, text: str) -> None: ...

class Model:
    path: str
    info: Dict[str, Any]
    n_col: int
    takes_rows: bool
    devices: List[str]
    def __init__(self, path: _Path) -> None: ...

class Scorer:
    model: Model
    adapt: bool
    def __init__(self, model: Union[_Path, Model], device: Optional[str] = ..., adapt: bool = ..., nearest: bool = ...,
                 devices_file: Optional[_Path] = ..., profile: Optional[str] = ..., threads: int = ..., tasks: _Paths = ...,
                 observed: Optional[_Path] = ...) -> None: ...
    def add_tasks(self, name: str, data: bytes) -> None: ...
    def task(self, key: str, target: Optional[str] = ..., hardware: Optional[Sequence[int]] = ..., flop: float = ...) -> Any: ...
    def packed(self, blob: bytes, n: int, task: Any = ...) -> Any: ...
    def rows(self, features: Sequence[np.ndarray], task: Any = ...) -> Any: ...
    def records(self, lines: Sequence[bytes]) -> Any: ...
    def score(self, batch: Any, dtype: Any = ...) -> Tuple[np.ndarray, np.ndarray]: ...
    def seconds(self, batch: Any) -> np.ndarray: ...
    def predict(self, batch: Any) -> Dict[str, Any]: ...
    def observe(self, batch: Any, seconds: Iterable[float]) -> int: ...
    def count(self) -> int: ...
    def save(self, path: _Path) -> None: ...
    def load(self, path: _Path) -> None: ...

class Network:
    names: List[str]
    def __init__(self, source: _Path, graph: bool = ..., batch: int = ..., input_size: int = ..., training: bool = ...,
                 layout: Optional[str] = ..., dim: Sequence[str] = ..., input: Sequence[str] = ..., tasks: _Paths = ...) -> None: ...
    def estimate(self, models: _Paths = ..., device: Optional[str] = ..., devices_file: Optional[_Path] = ...,
                 target: Optional[str] = ..., nearest: bool = ..., records: _Paths = ..., schedules: _Paths = ..., trials: int = ...,
                 seed: int = ..., cache: Optional[_Path] = ..., threads: int = ..., given_times: bool = ...,
                 allow_missing: bool = ..., workers: int = ..., level: float = ...) -> Estimate: ...

class Estimate:
    rows: List[Dict[str, Any]]
    def __init__(self, handle: Any) -> None: ...
    def nodes(self, i: int = ...) -> List[Dict[str, Any]]: ...
    def json(self, nodes: bool = ...) -> Dict[str, Any]: ...

class Latency:
    network: str
    device: str
    batch: int
    seconds: float
    low: float
    high: float
    memory_bytes: int
    unlike: float
    stand_in: str
    detail: Dict[str, Any]

class LLM:
    gpu: str
    tp: int
    concurrency: float
    ttft: float
    ttft_low: float
    ttft_high: float
    tpot: float
    tpot_low: float
    tpot_high: float
    tokens_per_second: float
    refused: str
    detail: Dict[str, Any]

def latency(source: Any, example_input: Any = ..., device: Union[None, str, Sequence[str]] = ..., batch: int = ..., level: float = ...,
            models: _Paths = ..., threads: int = ..., **options: Any) -> Union[Latency, List[Latency]]: ...
def llm(config: Union[_Path, Dict[str, Any]], gpu: Union[str, Sequence[str]], tp: Union[int, Sequence[int]] = ..., isl: int = ...,
        osl: int = ..., concurrency: Union[float, Sequence[float]] = ..., stack: Optional[str] = ..., model: Optional[_Path] = ...,
        measured: Optional[_Path] = ..., **options: Any) -> Union[LLM, List[LLM]]: ...
def pandas(answers: Union[Latency, LLM, Sequence[Latency], Sequence[LLM]]) -> Any: ...
def partition(network: _Path, model: Optional[_Paths] = ..., as_device: Optional[_Paths] = ..., schedules: Optional[_Paths] = ...,
              records: Optional[_Paths] = ..., whole: bool = ..., **options: Any) -> Dict[str, Any]: ...

class span:
    name: str
    missing: str
    def __init__(self, name: str) -> None: ...
    def __enter__(self) -> span: ...
    def __exit__(self, *_: Any) -> None: ...
