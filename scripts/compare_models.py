#!/usr/bin/env python3
"""compare_models.py [--ship] NAME... -- models that were trained again (build/model/NAME.cdmpp) beside those of models/.

Both answer the same questions: held-out records of examples/ (cpu), every sixtieth record of examples/h200 (gpu), products
and attention of a language model on GPUs (llm). Fails where the median of |ln(new / shipped)| is above 0.02 or one in a
hundred answers is further than 0.3 apart: other processors round other sums, and a tree then splits elsewhere.
--ship: puts the new ones into models/ (llm packed by zstd) and writes what they are made of to models/provenance.json.
From the environment: B, the folder of the commands."""
import hashlib, json, lzma, math, os, subprocess, sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
B = os.path.join(TOP, os.environ.get("B", "build/release"))
MEDIAN, FAR = 0.02, 0.3

def run(*argv, given=""):
    p = subprocess.run(argv, cwd=TOP, input=given, capture_output=True, text=True)
    if p.returncode not in (0, 3):
        sys.exit("compare_models: %s: %s" % (" ".join(argv), p.stderr.strip()[-400:]))
    return p.stdout

def answers(text):
    rows = [json.loads(l) for l in text.splitlines()]
    return [r["latency_s"] for r in rows if r.get("latency_s")]

def records(tasks, path):
    """Every sixtieth record of a log, or all of a short one, as predicted by a model."""
    with (lzma.open if path.endswith(".xz") else open)(os.path.join(TOP, path), "rt") as f:
        lines = f.readlines()
    some = "".join(lines[:: max(1, len(lines) // 100)])
    return lambda model: answers(run(B + "/cdmpp-predict", "--cost-model", model, "--tasks", tasks, "-q", "-", given=some))

def operators(model):
    """The steps of the carried language model on GPUs that were trained on and on one that was not."""
    out = []
    for gpu in ("h100", "l40s", "b200"):
        text = run(B + "/cdmpp-replay", "--llm", "examples/serving/llama-3.1-8b.json", "--gpu", gpu, "--tp", "1,4", "--concurrency", "1,64", "--cost-model", model, "--json")
        for a in json.loads(text)["result"]["answers"]:
            out += [a["ttft_s"], a["tpot_s"]]
    return out

# What is asked of each.
ASK = {"cpu": records("examples/zen5/zen5.tasks.json.xz", "examples/zen5/held_out.json"),
       "gpu": records("examples/h200/h200.tasks.json.xz", "examples/h200/measure_records/h200/programs.json.xz"), "llm": operators}

def compare(name):
    new, old = (ASK[name](path) for path in ("build/model/%s.cdmpp" % name, "models/%s.cdmpp" % name))
    if len(new) != len(old) or not new:
        print("models: %s: %d answers, the shipped model has %d" % (name, len(new), len(old)))
        return False
    off = sorted(abs(math.log(a / b)) for a, b in zip(new, old))
    median, far = off[len(off) // 2], sum(x > FAR for x in off)
    print("models: %s: %d answers, median |ln(new / shipped)| %.4f, most %.3f" % (name, len(off), median, off[-1]))
    return median <= MEDIAN and far * 100 <= len(off)

def digest(path):
    with open(os.path.join(TOP, path), "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()

def ship(names):
    path = os.path.join(TOP, "models/provenance.json")
    known = json.load(open(path)) if os.path.exists(path) else {}
    for name in names:
        made, to = os.path.join(TOP, "build/model/%s.cdmpp" % name), os.path.join(TOP, "models/%s.cdmpp" % name)
        header = json.loads(run(B + "/cdmpp-predict", "--cost-model", made, "--info", "--json"))
        with open(made, "rb") as f:
            data = f.read()
        if name == "llm":
            data = subprocess.run(["zstd", "-q", "-19", "-c"], input=data, capture_output=True, check=True).stdout
        with open(to + ".new", "wb") as f:
            f.write(data)
        os.replace(to + ".new", to)
        with open(os.path.join(TOP, "build/model/%s.txt" % name)) as f:
            held_out = [l.strip() for l in f if l.startswith("test")]
        model = header["model"]
        known[name] = {"file": "models/%s.cdmpp" % name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest(), "command": "make model MODELS=%s SHIP=1" % name,
                       "tool": header["tool"], "devices": [d["name"] for d in model["devices"]], "features": model.get("feature_digest"), "trained": header.get("data"), "held_out": held_out}
    with open(path + ".new", "w") as f:
        json.dump(known, f, indent=1, sort_keys=True)
        f.write("\n")
    os.replace(path + ".new", path)

def main(argv):
    names = [a for a in argv if a != "--ship"]
    if "--ship" in argv:
        ship(names)
        return 0
    return 0 if all([compare(n) for n in names]) else 1

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
