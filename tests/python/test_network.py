"""Networks from Python: the numbers of cdmpp-replay, errors, lifetimes."""
import json
import math
import os
import subprocess
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


if __name__ == "__main__":
    result = unittest.TextTestRunner(verbosity=0).run(unittest.defaultTestLoader.loadTestsFromTestCase(Networks))
    bad = len(result.failures) + len(result.errors)
    print("python: %d passed, %d failed" % (result.testsRun - bad, bad))
    raise SystemExit(bad != 0)
