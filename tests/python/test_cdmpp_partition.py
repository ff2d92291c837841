"""cdmpp.partition gives what cdmpp-partition --json prints."""
import importlib
import json
import os
import subprocess
import unittest

import cdmpp

ASK = {"model": "tests/golden/model_v1.cdmpp", "as_device": "zen5-avx2", "devices": "cpu0,ocl0", "input_size": 64, "trials": 2}


class Partition(unittest.TestCase):
    def test_same_as_command(self):
        command = os.path.join(os.path.dirname(os.environ["CDMPP_LIBRARY"]), "cdmpp-partition")
        said = subprocess.run([command, "-q", "--network", "squeezenet-1.1", "--input-size", "64", "--cost-model", ASK["model"], "--as", ASK["as_device"], "--devices",
                               ASK["devices"], "--trials", "2", "--json"], stdout=subprocess.PIPE, check=True).stdout
        self.assertEqual(cdmpp.partition("squeezenet-1.1", **ASK), json.loads(said)["result"])

    def test_whole(self):
        got = cdmpp.partition("squeezenet-1.1", whole=True, **ASK)
        self.assertFalse(got["split"])

    def test_errors(self):
        with self.assertRaises(cdmpp.CdmppError) as e:
            cdmpp.partition("squeezenet-1.1", devices="gpu9")
        self.assertEqual(e.exception.code, "EUSAGE")


if __name__ == "__main__":
    os.environ.pop("CDMPP_MODELS", None)
    result = unittest.TextTestRunner(verbosity=0).run(unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module("__main__")))
    bad = len(result.failures) + len(result.errors)
    print("python: %d passed, %d failed" % (result.testsRun - bad, bad))
    raise SystemExit(bad != 0)
