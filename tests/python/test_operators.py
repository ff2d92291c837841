"""Operators of language models from Python: the answers of cdmpp-predict, errors; tables as Parquet. Steps of a model: test_serving.py."""
import gzip
import json
import os
import subprocess
import sys
import types
import unittest

import cdmpp_parquet
from cdmpp import CdmppError
from cdmpp_operators import Operators

W, B = os.environ["WORK"], os.environ["B"]
MODEL, TABLE, DEVICES = W + "/llm.cdmpp", W + "/llm.csv", "configs/devices.yaml"


class TestOperators(unittest.TestCase):
    def test_answers(self):
        llm = Operators(MODEL, measured=TABLE, devices_file=DEVICES)
        rows = [dict(op="gemm", device="h100", stack="vllm-1", m=m, n=512, k=512) for m in (16, 17, 3)] + [dict(op="gemm", device="h200", m=8, n=64, k=64, dtype="fp8")]
        run = subprocess.run([B + "/cdmpp-predict", "--stream", "--operators", "--cost-model", MODEL, "--measured", TABLE, "--devices", DEVICES],
                             input="".join(json.dumps(r) + "\n" for r in rows), stdout=subprocess.PIPE, text=True, check=True)
        for line, got in zip(run.stdout.splitlines(), llm.ask_many(rows)):
            want = json.loads(line)
            self.assertEqual((want["how"], want["new"] or ""), (got.how, "+".join(got.new)))
            for name, value in (("latency_s", got.seconds), ("low_s", got.low), ("estimate_s", got.estimate), ("bound_s", got.bound)):
                if value is None:
                    self.assertIsNone(want[name])
                else:
                    self.assertAlmostEqual(want[name] / value, 1, 7)
        self.assertEqual(llm.ask(**rows[0]), llm.ask(**rows[0], kernel=None))

    def test_errors(self):
        llm = Operators(MODEL, device="h100", devices_file=DEVICES)
        with self.assertRaises(CdmppError) as e:
            llm.ask(op="gem")
        self.assertEqual(e.exception.code, "EUNSUPPORTED")
        first, second = llm.ask_many([dict(op="gemm", m=1, n=64, k=64), dict(op="gemm", dtyp="fp8")])
        self.assertTrue(first.seconds > 0 and second.code == "ESCHEMA")
        self.assertEqual(llm.ask_many([]), [])
        with self.assertRaises(TypeError):
            llm.ask(op="gemm", m=[1])
        for code, call in (("EIO", lambda: Operators(W + "/none.cdmpp")), ("EMODEL", lambda: Operators(W + "/a.cdmpp", devices_file=DEVICES)),
                           ("ESCHEMA", lambda: Operators(MODEL, device="h9000", devices_file=DEVICES)), ("EUSAGE", lambda: Operators(MODEL, level=7))):
            with self.assertRaises(CdmppError) as e:
                call()
            self.assertEqual(e.exception.code, code)


class TestParquet(unittest.TestCase):
    """On a stand-in of pyarrow.parquet, which is often not installed."""

    def test_convert(self):
        columns = {"m": [1, 2, None], "latency": [0.1, float("nan"), 1e-07], "kernel_source": ["a", "", None]}
        batches = [types.SimpleNamespace(columns=[types.SimpleNamespace(to_pylist=lambda v=v, s=s: v[s]) for v in columns.values()]) for s in (slice(0, 2), slice(2, 3))]
        stand_in = types.SimpleNamespace(ParquetFile=lambda path: types.SimpleNamespace(schema_arrow=types.SimpleNamespace(names=list(columns)), iter_batches=lambda: iter(batches)))
        to = W + "/out/h100_sxm/gemm.tsv.gz"
        cdmpp_parquet.convert(stand_in, "gemm.parquet", to)
        with gzip.open(to, "rt") as f:
            self.assertEqual(f.read(), "m\tlatency\tkernel_source\n1\t0.1\ta\n2\t\t\n\t1e-07\t\n")
        columns["kernel_source"][0] = "a\tb"
        with self.assertRaises(SystemExit):
            cdmpp_parquet.convert(stand_in, "gemm.parquet", to)
        self.assertEqual(cdmpp_parquet.tables("x/h100_sxm/gemm.parquet"), [("x/h100_sxm/gemm.parquet", "h100_sxm/gemm.parquet")])

    def test_without_pyarrow(self):
        run = subprocess.run([sys.executable, "-c", "import sys; sys.modules['pyarrow'] = None; import cdmpp_parquet; cdmpp_parquet.main(['a', 'b'])"], stderr=subprocess.PIPE, text=True)
        self.assertEqual((run.returncode, "pyarrow is not installed" in run.stderr), (1, True))


if __name__ == "__main__":
    suite = unittest.TestSuite(unittest.defaultTestLoader.loadTestsFromTestCase(c) for c in (TestOperators, TestParquet))
    result = unittest.TextTestRunner(verbosity=0).run(suite)
    bad = len(result.failures) + len(result.errors)
    print("python: %d passed, %d failed" % (result.testsRun - bad, bad))
    raise SystemExit(bad != 0)
