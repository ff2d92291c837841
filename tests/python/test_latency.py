"""One call from a model to its latency: cdmpp.latency and cdmpp.llm, with the models that come with the program and with named ones."""
import json
import math
import os
import sys
import tempfile
import types
import warnings

import cdmpp

WORK, ROOT = os.environ["WORK"], os.getcwd()
LLAMA = os.path.join(ROOT, "examples/serving/llama-3.1-8b.json")


def refused(code, call):
    try:
        call()
    except cdmpp.CdmppError as e:
        assert e.code == code, (e.code, str(e))
        return str(e)
    raise AssertionError("%s: no error" % code)


def networks():
    """From a folder that is not the project's."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        one = cdmpp.latency(os.path.join(ROOT, "examples/resnet18.onnx"), device="zen4", trials=4)
        both = cdmpp.latency("squeezenet-1.1", device="zen4,h100") # a few drawn programs need not hold a fast one of a GPU
        os.chdir(ROOT)
    assert one.device == "zen4" and one.batch == 1 and 0 < one.low < one.seconds < one.high and one.memory_bytes > 1e6, one
    assert [b.device for b in both] == ["zen4", "h100"] and both[1].seconds < both[0].seconds
    chip = cdmpp.latency("resnet-18", device=["h100", "h100-pcie"])  # with fewer cores and slower memory
    assert chip[0].seconds < chip[1].seconds < 2 * chip[0].seconds, chip
    own = cdmpp.latency("squeezenet-1.1", device="zen5-avx512", trials=4, models=[WORK + "/a.cdmpp"])
    assert own.detail["n_node"] > 10 and own.seconds > 0
    here, named = cdmpp.latency("squeezenet-1.1", device="here,zen4", trials=4)
    assert named.device == "zen4" and here.seconds > 0 and (here.device == "here") == bool(here.detail["unlike_share"]), here
    assert named.stand_in == "" and bool(here.stand_in) == (here.device == "here"), here
    assert "did you mean zen4" in refused("EMODEL", lambda: cdmpp.latency("squeezenet-1.1", device="here,zen9"))
    assert "device='h100'" in refused("EUSAGE", lambda: cdmpp.latency("squeezenet-1.1", "h100"))
    assert "zoo" in refused("ESCHEMA", lambda: cdmpp.latency("nosuch"))
    assert "example_input" in refused("EUSAGE", lambda: cdmpp.latency(len))
    assert "found 42" in refused("EUSAGE", lambda: cdmpp.latency(42))
    assert "cdmpp.llm(" in refused("EUSAGE", lambda: cdmpp.latency("some/config.json"))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        other = cdmpp.latency("squeezenet-1.1", device=["a100"], trials=4)
    assert any("a100" in str(w.message) and "stands in" in str(w.message) for w in said), [str(w.message) for w in said]
    assert "detail" not in repr(other) and other.detail


def torch_module():
    """A module is exported by the user's torch and evaluated, whatever mode it is in; here a stand-in for torch."""
    said = []

    class Module:
        training = True

        def __call__(self):
            raise AssertionError("nobody runs it")

        def eval(self):
            said.append("eval")

        def train(self, mode):
            said.append(mode)

    def export(module, args, path):
        assert isinstance(args, tuple) and args == ("example",)
        with open(os.path.join(ROOT, "examples/resnet18.onnx"), "rb") as f, open(path, "wb") as to:
            to.write(f.read())

    class no_grad:
        def __enter__(self):
            said.append("no_grad")

        def __exit__(self, *_):
            return False

    sys.modules["torch"] = types.SimpleNamespace(onnx=types.SimpleNamespace(export=export), no_grad=no_grad)
    try:
        got = cdmpp.latency(Module(), "example", device="zen4", trials=4)
    finally:
        del sys.modules["torch"]
    def broken(module, args, path):
        with open(path, "wb") as f:
            f.write(b"no network")

    sys.modules["torch"] = types.SimpleNamespace(onnx=types.SimpleNamespace(export=broken), no_grad=no_grad)
    try:
        text = refused("EPARSE", lambda: cdmpp.latency(Module(), "example", device="zen4"))
    finally:
        del sys.modules["torch"]
    assert "the torch module Module" in text and tempfile.gettempdir() not in text, text
    del said[3:]
    assert got.network == "Module" and got.seconds > 0 and said == ["eval", "no_grad", True], (got, said)


def language_models():
    a = cdmpp.llm(LLAMA, gpu="h100")
    assert a.gpu == "h100" and a.ttft_low < a.ttft < a.ttft_high and a.tpot_low < a.tpot < a.tpot_high and a.tokens_per_second > 0 and not a.refused
    many = cdmpp.llm(json.load(open(LLAMA)), gpu=["h100", "b200"], tp=[1, 3], concurrency=4, isl=512, osl=32)
    assert [(m.gpu, m.tp) for m in many] == [("h100", 1), ("h100", 3), ("b200", 1), ("b200", 3)]
    assert "divisor of num_attention_heads" in many[1].refused and math.isnan(many[1].ttft)
    assert cdmpp.llm(LLAMA, gpu="h100", kv_dtype="fp8").detail["kv_dtype"] == "fp8"
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        cdmpp.llm(LLAMA, gpu="b200")
    assert any("b200" in str(w.message) for w in said), said
    assert "nosuch" in refused("EIO", lambda: cdmpp.llm("/nosuch.json", gpu="h100"))
    text = refused("EUNSUPPORTED", lambda: cdmpp.llm({"model_type": "nosuch"}, gpu="h100"))
    assert text.startswith("config: ") and tempfile.gettempdir() not in text, text
    assert "xx1" in refused("ESCHEMA", lambda: cdmpp.llm(LLAMA, gpu="xx1"))
    assert "--frob" in refused("EUSAGE", lambda: cdmpp.llm(LLAMA, gpu="h100", frob=1))


def tables():
    class Frame(list):
        pass

    sys.modules["pandas"] = types.SimpleNamespace(DataFrame=Frame)
    try:
        rows = cdmpp.pandas([cdmpp.LLM("h100", 1, 1, 1.0, 0.5, 2.0, 0.1, 0.05, 0.2, 10.0, "", {"a": 1})])
    finally:
        del sys.modules["pandas"]
    assert list(rows) == [{"gpu": "h100", "tp": 1, "concurrency": 1, "ttft": 1.0, "ttft_low": 0.5, "ttft_high": 2.0, "tpot": 0.1, "tpot_low": 0.05, "tpot_high": 0.2,
                           "tokens_per_second": 10.0, "refused": ""}]


if __name__ == "__main__":
    del os.environ["CDMPP_DEFAULT_MODEL"] # the models that come with the program
    os.environ["XDG_DATA_HOME"] = os.environ["XDG_CACHE_HOME"] = WORK
    for test in (networks, torch_module, language_models, tables):
        test()
    print("python: 4 passed, 0 failed")
