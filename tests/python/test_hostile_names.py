"""Names of strangers in everything that commands write, read back by the reader of each language. Python 3 and nothing else."""
import csv
import html.parser
import importlib
import io
import json
import os
import re
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

BIN = os.environ.get("B", "build/release")
MODEL = os.path.abspath("tests/golden/model_v1.cdmpp")
NAMES = ['"><script>alert(1)</script>', "</script><img src=x onerror=alert(1)>", "*/ #include </etc/passwd>\nint evil; /*", '"; rm -rf ~; \'', "$(touch pwned) `touch pwned`", "../../x", "a\nb\r\nc", "\033[2J\033]0;x\a", "\x9b2J",
         "%s%n%1$s", "\u202etxt.exe", "&lt;b&gt;", "a\\", "=cmd|'/C calc'!A0", "x" * 10000, "m2\n$(shell touch pwned)"]


def graph():
    """A network of given nodes, one for each name, in our own form."""
    nodes = [{"name": n, "op": NAMES[-1 - k], "kind": "given", "given_s": 1e-6 * (k + 1), "after": [NAMES[k - 1]] if k else []} for k, n in enumerate(NAMES)]
    return {"schema": "cdmpp.netgraph", "version": 1, "networks": [{"name": NAMES[0], "device": "d</script>*/\n\033[2J", "nodes": nodes}, {"name": NAMES[1], "device": "../d", "nodes": nodes}]}


class Page(html.parser.HTMLParser):
    """The elements of a page, their attributes, and what its scripts of data hold."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.data, self.within = set(), set(), [], None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {k for k, _ in attrs}
        self.within = "data" if tag == "script" and ("type", "application/json") in attrs else tag

    def handle_endtag(self, tag):
        self.within = None

    def handle_data(self, data):
        if self.within == "data":
            self.data.append(data)


def strings(value):
    if isinstance(value, dict):
        return set().union(*[strings(k) | strings(v) for k, v in value.items()])
    if isinstance(value, list):
        return set().union(*[strings(v) for v in value]) if value else set()
    return {value} if isinstance(value, str) else set()


class HostileNames(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        with open(self.at("g.json"), "w", encoding="utf-8") as f:
            json.dump(graph(), f)

    def tearDown(self):
        self.folder.cleanup()

    def at(self, name):
        return os.path.join(self.folder.name, name)

    def run_command(self, *words, codes=(0, 3)):
        p = subprocess.run([os.path.abspath(os.path.join(BIN, words[0]))] + list(words[1:]), cwd=self.folder.name, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           env=dict(os.environ, CDMPP_DEFAULT_MODEL="", XDG_CACHE_HOME=self.folder.name))
        self.assertIn(p.returncode, codes, p.stderr)
        self.assertFalse(os.path.exists(self.at("pwned")))
        for text in (p.stdout, p.stderr):
            self.assertIsNone(re.search(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]|\r(?!\n)", text))
        return p.stdout, p.stderr

    def replay(self, *words):
        return self.run_command("cdmpp-replay", "--graph", "g.json", "--replay-given", *words)[0]

    def test_terminal(self):
        self.replay()
        self.replay("--ops")
        self.run_command("cdmpp-replay", "--graph", "no\033[2Jfile\n", "--replay-given", codes=(4, 5, 1, 2))
        self.run_command("cdmpp-replay", "--device", "no\033[2J\x7fdevice", "--network", "no\x07network", codes=(4, 5, 1, 2))

    def test_json(self):
        got = strings(json.loads(self.replay("--ops", "--json")))
        self.assertFalse([n[:40] for n in NAMES if n not in got])

    def test_csv(self):
        rows = list(csv.DictReader(io.StringIO(self.replay("--ops", "--csv").decode("utf-8"), newline="")))
        self.assertEqual(len(rows), 2 * len(NAMES))
        self.assertFalse([r for r in rows if None in r or None in r.values()])
        clean = lambda n: re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", "?", n.replace("\r\n", "\n"))
        self.assertEqual({clean(r["name"]) for r in rows}, {clean(n) for n in NAMES})

    def test_html(self):
        self.replay("--html", "p.html")
        with open(self.at("p.html"), encoding="utf-8") as f:
            page = Page(f.read())
        self.assertNotIn("img", page.tags)
        self.assertNotIn("onerror", page.attributes)
        self.assertEqual(len(page.data), 1)
        got = strings(json.loads(page.data[0]))
        self.assertTrue({n for n in NAMES if len(n) < 60} <= got)

    def test_dot(self):
        self.replay("--save-graph", "p.dot")
        with open(self.at("p.dot"), encoding="utf-8") as f:
            text = f.read()
        # without its strings a drawing has nothing but its own words
        self.assertIsNone(re.search(r'[^\w\s{}\[\]=;,>"-]', re.sub(r'"(?:[^"\\]|\\.)*"', '""', text)))
        for n in ("%s%n%1$s", "&lt;b&gt;", "../../x"):
            self.assertIn(n, text)

    def test_traces_and_their_files(self):
        before = set(os.listdir(os.path.dirname(self.folder.name)))
        self.replay("--trace", "t.json")
        made = [f for f in os.listdir(self.folder.name) if f.startswith("t.")]
        self.assertEqual(len(made), 2)
        for f in made:
            self.assertRegex(f, r"\A[\w.@=,+-]+\Z")
            with open(self.at(f), encoding="utf-8") as t:
                self.assertTrue({"%s%n%1$s", "../../x"} <= strings(json.load(t)))
        self.assertEqual({f for f in os.listdir(os.path.dirname(self.folder.name)) if f.startswith("t.")} - before, set())

    def test_sources(self):
        """An ONNX network whose names try to be C, a makefile, a page; its parts as sources that a compiler reads."""
        def field(k, data):
            return bytes([k << 3 | 2]) + self.varint(len(data)) + data
        evil = [b"</script><img src=x onerror=alert(1)>", b"*/ int x; /* \"", b'f\n#include </etc/passwd>\nint evil;', b"m2\n$(shell touch pwned)", b"\xff\xfe"]

        def node(ins, out, name, op):
            return field(1, b"".join(field(1, i) for i in ins) + field(2, out) + field(3, name) + field(4, op))

        def value(k, name, *dims):
            shape = b"".join(field(1, b"\x08" + self.varint(d)) for d in dims)
            return field(k, field(1, name) + field(2, field(1, b"\x08\x01" + field(2, shape))))
        g = node([b"a", b"b"], evil[0], evil[0], b"MatMul") + node([evil[0]], b"d", evil[1], b"Relu") + node([b"d", b"e"], evil[2], evil[3], b"MatMul") + field(2, evil[2])
        g += value(11, b"a", 128, 256) + value(11, b"b", 256, 512) + value(11, b"e", 512, 64) + value(12, evil[2], 128, 64)
        with open(self.at("n.onnx"), "wb") as f:
            f.write(b"\x08\x08" + field(7, g) + field(8, b"\x0a\x00\x10\x0d"))
        devices = ["cpu0", "npu^(1)[2]=~", "gpu@2"]
        machine = {"cdmpp_machine": 1, "devices": [{"name": d, "kind": "model" if k else "cpu", **({} if k else {"core": 0}), "memory": k, "scale": 1 / (1 + 3 * k), "times": 1, "launch_s": 1e-6, "sync_s": 1e-6}
                                                   for k, d in enumerate(devices)],
                   "links": [{"from": x, "to": y, "how": "copy", "n": 0, "noise": 0, "pieces": [[0, 1e-6, 1e-10]]} for x in devices for y in devices if x != y or x == "cpu0"]}
        with open(self.at("m.json"), "w", encoding="utf-8") as f:
            json.dump(machine, f)
        ask = ["--network", "n.onnx", "--cost-model", MODEL, "--trials", "1"]
        self.run_command("cdmpp-replay", "-q", *ask, "--device", "zen5-avx2", "--html", "n.html", "--json")
        with open(self.at("n.html"), encoding="utf-8") as f:
            self.assertNotIn("img", Page(f.read()).tags)
        self.run_command("cdmpp-partition", "-q", *ask, "--as", "zen5-avx2", "--no-split", "--machine", "m.json", "--emit", "out", "--html", "p.html")
        with open(self.at("p.html"), encoding="utf-8") as f:
            self.assertNotIn("img", Page(f.read()).tags)
        with open(self.at("bad.json"), "w", encoding="utf-8") as f:
            json.dump(json.loads(json.dumps(machine).replace("gpu@2", "*/int_evil;/*")), f)
        self.run_command("cdmpp-partition", "-q", *ask, "--as", "zen5-avx2", "--no-split", "--machine", "bad.json", "--emit", "bad", codes=(4,))
        made = sorted(os.listdir(self.at("out")))
        self.assertTrue([f for f in made if f.endswith(".c")])
        for f in made:
            self.assertRegex(f, r"\A[\w.-]+\Z")
            if f.endswith(".json"):
                with open(os.path.join(self.at("out"), f), encoding="utf-8") as j:
                    json.load(j)
            if f.endswith(".c"):
                subprocess.run(["cc", "-fsyntax-only", "-w", os.path.join(self.at("out"), f)], check=True)
        with open(os.path.join(self.at("out"), "Makefile"), encoding="utf-8") as m:
            self.assertNotIn("shell", m.read())

    @staticmethod
    def varint(n):
        out = b""
        while n > 127:
            out, n = out + bytes([n & 127 | 128]), n >> 7
        return out + bytes([n])

    def test_svg(self):
        """A table of links between devices with such names, drawn."""
        with open(self.at("c.csv"), "w", encoding="utf-8", newline="") as f:
            w = csv.writer(f)
            w.writerow(["size", "seconds", "curve"])
            for n in ('"><script>', "</svg><img>", "%s%n", "\033[2J&"):
                w.writerows([k, 1e-6 * k, n] for k in range(1, 40))
        self.run_command("cdmpp-partition", "curve", "c.csv", "--svg", "c.svg")
        tree = xml.etree.ElementTree.parse(self.at("c.svg"))
        self.assertLessEqual({e.tag.split("}")[1] for e in tree.iter()}, {"svg", "style", "rect", "title", "desc", "path", "text", "circle", "g"})


if __name__ == "__main__":
    result = unittest.TextTestRunner(verbosity=0).run(unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module("__main__")))
    bad = len(result.failures) + len(result.errors)
    print("python: %d passed, %d failed" % (result.testsRun - bad, bad))
    raise SystemExit(bad != 0)
