"""Networks and spans from Python: the numbers of cdmpp-replay and cdmpp-profile wrap, errors, lifetimes."""
import json
import math
import os
import subprocess
import sys
import unittest

import cdmpp

W, B = os.environ["WORK"], os.environ["B"]
MODEL, GRAPH = W + "/a.cdmpp", W + "/fork.json"
with open(GRAPH, "w") as f:
    json.dump({"schema": "cdmpp.netgraph", "version": 1, "networks": [
        {"name": "fork", "batch": 4, "device": "v100", "nodes": [
            {"name": "a", "op": "Conv", "kind": "given", "given_s": 1e-3},
            {"name": "b", "op": "Conv", "kind": "given", "given_s": 2e-3, "after": ["a"]}]},
        {"name": "gap", "nodes": [{"name": "odd", "op": "Strange", "kind": "unknown", "why": "nobody knows it"}]}]}, f)


def replay(*args):
    run = subprocess.run([B + "/cdmpp-replay", "-q", "--json", "--cache", "", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return json.loads(run.stdout)


class Networks(unittest.TestCase):
    def test_graph(self):
        net = cdmpp.Network(GRAPH, graph=True)
        self.assertEqual(net.names, ["fork", "gap"])
        e = net.estimate(device="v100", given_times=True)
        del net
        self.assertEqual([r["status"] for r in e.rows], ["OK", "ESCHEMA"])
        self.assertIn("nobody knows it", e.rows[1]["error"])
        self.assertTrue(math.isnan(e.rows[1]["seconds"]))
        want = replay("--graph", GRAPH, "--replay-given", "--device", "v100", "--ops")
        self.assertEqual(e.json(nodes=True), want)
        self.assertEqual(e.rows[0]["seconds"], want["fork"]["latency_s"])
        self.assertEqual([(o["name"], o["end"], o["critical"]) for o in e.nodes(0)],
                         [(o["name"], o["end_s"], o["critical"]) for o in want["fork"]["operators"]])

    def test_zoo(self):
        e = cdmpp.Network("squeezenet-1.1", batch=2).estimate([MODEL], trials=4, level=0.8)
        want = replay("--network", "squeezenet-1.1", "--batch", "2", "--cost-model", MODEL, "--trials", "4", "--level", "0.8")
        self.assertEqual(e.json()["result"], want["result"])
        one = want["result"]["estimates"][0]
        self.assertEqual([e.rows[0][k] for k in ("seconds", "low", "high", "batch")], [one[k] for k in ("latency_s", "low_s", "high_s", "batch")])

    def test_errors(self):
        for code, call in (("ESCHEMA", lambda: cdmpp.Network("resnet-19")), ("EIO", lambda: cdmpp.Network(W + "/none.json", graph=True)),
                           ("EMODEL", lambda: cdmpp.Network("squeezenet-1.1").estimate([MODEL], device="nobody"))):
            with self.assertRaises(cdmpp.CdmppError) as e:
                call()
            self.assertEqual(e.exception.code, code)

    def test_span(self):
        with cdmpp.span("alone") as s:
            pass
        self.assertTrue(s.seconds >= 0 and s.heap_peak is None and "cdmpp-wrap" in s.missing)
        program = ("import cdmpp\nwith cdmpp.span('outer') as o:\n  x = bytearray(10_000_000)\n  del x\n  with cdmpp.span('inner') as i:\n    y = bytearray(2_000_000)\n"
                   "assert 10e6 <= o.heap_peak < 11e6 and 2e6 <= i.heap_live < 3e6 and i.missing == ''")
        subprocess.run([B + "/cdmpp-profile", "wrap", "--json", "--out", W + "/wrap.json", "--", sys.executable, "-c", program], check=True)
        with open(W + "/wrap.json") as f:
            spans = {one["name"]: one for one in json.load(f)["result"]["spans"]}
        self.assertTrue(10e6 <= spans["outer"]["peak_bytes"] < 11e6 and 2e6 <= spans["inner"]["peak_bytes"] < 3e6 and spans["inner"]["times"] == 1)


if __name__ == "__main__":
    result = unittest.TextTestRunner(verbosity=0).run(unittest.defaultTestLoader.loadTestsFromTestCase(Networks))
    bad = len(result.failures) + len(result.errors)
    print("python: %d passed, %d failed" % (result.testsRun - bad, bad))
    raise SystemExit(bad != 0)
