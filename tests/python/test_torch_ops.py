"""cdmpp_torch_ops on a stand-in of PyTorch: what is written, resumed and refused; its tables are those that cdmpp-predict reads."""
import contextlib
import io
import json
import os
import subprocess
import tempfile
import types
import unittest
from unittest import mock

import cdmpp_torch_ops as ops

W, B = os.environ["WORK"], os.environ["B"]


def stand_in(refuse=None):
    """Measured calls take as many microseconds as the product has rows; what `refuse` names raises."""
    def call(torch, kind, dtype, kernel, s):
        if dtype == refuse:
            raise RuntimeError("no kernel for " + dtype + "\nmore")
        return s[0]
    return mock.patch.multiple(ops, call=call, seconds=lambda torch, rows: (rows * 1e-6, 0.01), shapes=lambda kind: [(m, 64, 64) for m in (1, 2, 4)])


class TestTorchOps(unittest.TestCase):
    def measured(self, folder, limit=60, refuse=None):
        said = io.StringIO()
        with stand_in(refuse), contextlib.redirect_stderr(said):
            ops.measure(types.SimpleNamespace(), folder, "gemm", "torch-9.9", "NVIDIA H200", limit)
        return said.getvalue()

    def test_table(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertIn("gemm: 9 rows measured, 0 known before, 0 refused, 0 not reached", self.measured(folder))
            path = folder + "/gemm.tsv"
            text = open(path).read()
            self.assertEqual(text.splitlines()[0].split("\t"), "device stack kernel dtype m n k spread latency_s".split())
            self.assertIn("NVIDIA H200\ttorch-9.9\ttorch._scaled_mm\tfp8\t4\t64\t64\t0.0100\t4e-06\n", text)
            with open(path, "a") as f:
                f.write("NVIDIA H200\ttorch-9.9\tto")  # a killed run's last line
            self.assertIn("0 rows measured, 9 known before", self.measured(folder))
            self.assertEqual(open(path).read(), text)
            run = subprocess.run([B + "/cdmpp-predict", "--operators", "--cost-model", W + "/llm.cdmpp", "--devices", "configs/devices.yaml", "--measured", path, path],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            answers = [json.loads(line) for line in run.stdout.splitlines()]
            self.assertEqual([a["how"] for a in answers], ["measured"] * 9)

    def test_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            said = self.measured(folder, refuse="fp8")
            self.assertIn("gemm torch._scaled_mm fp8 ", said)
            self.assertIn(": no kernel for fp8\n", said)
            self.assertIn("6 rows measured, 0 known before, 3 refused, 0 not reached", said)
            self.assertIn("0 rows measured, 6 known before, 0 refused, 3 not reached", self.measured(folder, limit=-1))

    def test_kinds(self):
        with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit):
            ops.main(["--kinds", "gemm,conv", "x"])
        self.assertIn("conv: no such kind", said.getvalue())


if __name__ == "__main__":
    unittest.main()
