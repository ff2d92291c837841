#!/usr/bin/env python3
"""calibrate_networks.py WORK [TABLE] -- whole networks on this machine, by a model that saw no processor of its kind and by what cdmpp-tune calibrate makes of it.

In WORK: the recipe of the default model learns from the records of OTHERS alone (default: zen4 granite, for a Zen 5); calibrate corrects it once, --seconds SECONDS (default 300), by its
usual tasks; then each network is estimated by either model, with schedules that this model chooses, and run with them (cdmpp-replay --run --cpu-time, one thread). Prints
words for figures.py put; writes a Markdown table to TABLE. A step that is done is not done again. From the environment: B, SECONDS, OTHERS (folders of examples/), NETWORKS
(default: the ten of the test set calibrate-networks-5; NAME@SIZE is one at another input size)."""
import json, os, subprocess, sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import figures

B = os.path.abspath(os.environ.get("B", "build/release"))
TEST = "squeezenet-1.0 mobilenet-v3 vgg-19 nasnet-large roberta-base bert-tiny resnet3d-34 resnet-34 densenet-201 yolov5s"

def run(work, *words, good=(0,)):
    env = dict(os.environ, XDG_CACHE_HOME=os.path.join(work, "cache"))
    p = subprocess.run([os.path.join(B, words[0]), *words[1:]], cwd=work, env=env, capture_output=True, text=True)
    if p.returncode not in good:
        sys.exit("calibrate_networks: %s: status %d\n%s" % (" ".join(words), p.returncode, p.stderr))
    return p.stdout

def once(path, make):
    if not os.path.exists(path):
        text = make()
        figures.write(path, text)
    with open(path) as f:
        return json.load(f)

def learn(work, others):
    """The model that is calibrated."""
    if os.path.exists(os.path.join(work, "others.cdmpp")):
        return
    files = []
    for name in others:
        d = os.path.abspath("examples/" + name)
        run(work, "cdmpp-extract", "-q", "--tasks", "%s/%s.tasks.json.xz" % (d, name), "--out", name + ".h5", d + "/measure_records", good=(0, 3))
        files.append(name + ".h5")
    run(work, "cdmpp-train", os.path.abspath("configs/default.yaml"), "-q", "--set", "data.files=[%s]" % ",".join(os.path.join(work, f) for f in files),
        "--set", "device.file=" + os.path.abspath("configs/devices.yaml"), "--out", "others.cdmpp")

def estimate(work, network, model, device=None):
    """Of one network: seconds said, low, high, and measured. device: who stands for the machine; None: the model knows it."""
    name, _, size = network.partition("@")
    words = ("cdmpp-replay", "--network", name, *(("--input-size", size) if size else ()), "--run", "--cpu-time", "--json", "--ops", "--cost-model", model + ".cdmpp", *(("--device", device) if device else ()))
    e = once(os.path.join(work, "%s-%s.json" % (network, model)), lambda: run(work, *words))["result"]["estimates"][0]
    return {"s": e["latency_s"], "low": e["low_s"], "high": e["high_s"], "run": e["run_s"], "ops": e["operators"]}

def measured_tasks(work):
    """The tasks of which calibrate has measured programs."""
    with open(os.path.join(work, "here.records.json")) as f:
        return {json.loads(line)["i"][0][0] for line in f}

def share(ops, tasks):
    """Of the estimated time, what is of these tasks."""
    return sum(o["seconds"] for o in ops if o.get("workload_key") in tasks) / sum(o["seconds"] for o in ops)

def main(work, table):
    work = os.path.abspath(work)
    os.makedirs(work, exist_ok=True)
    seconds, networks = os.environ.get("SECONDS", "300"), os.environ.get("NETWORKS", TEST).split()
    learn(work, os.environ.get("OTHERS", "zen4 granite").split())
    c = once(os.path.join(work, "calibrate.json"), lambda: run(work, "cdmpp-tune", "calibrate", "--seconds", seconds, "--cost-model", "others.cdmpp", "--json"))["result"]
    tasks = measured_tasks(work)
    rows = ["| network | before ms | run ms | error % | calibrated ms | run with its schedules ms | its error % | in the 90 % interval, before, after | time in measured tasks % |",
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- | ---: |"]
    error = {"others": [], "here": []}
    inside = {"others": 0, "here": 0}
    for n in networks:
        got = {k: estimate(work, n, k, c["device"] if k == "others" else None) for k in error}
        for k, e in got.items():
            error[k].append(100 * (e["s"] / e["run"] - 1))
            inside[k] += e["low"] <= e["run"] <= e["high"]
        cells = ["%.3g | %.3g | %+.1f" % (1e3 * e["s"], 1e3 * e["run"], error[k][-1]) for k, e in got.items()]
        rows.append("| %s | %s | %s | %.0f |" % (n, " | ".join(cells), ", ".join("yes" if e["low"] <= e["run"] <= e["high"] else "no" for e in got.values()),
            100 * share(got["here"]["ops"], tasks)))
        print("calibrate_networks: " + rows[-1], file=sys.stderr)
    if table:
        figures.write(table, "\n".join(rows) + "\n")
    for k in error:
        size = [abs(e) for e in error[k]]
        print("figure:mean-%s=%.1f,%%,%d,1" % (k, sum(size) / len(size), len(size)))
        print("figure:most-%s=%.1f,%%,%d,1" % (k, max(size), len(size)))
        print("figure:inside-%s=%d,,%d,1" % (k, inside[k], len(size)))
    print("figure:programs=%d,,%d,1" % (c["measured"], c["measured"]))
    return 0

if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None) if len(sys.argv) in (2, 3) else __doc__)
