#!/usr/bin/env python3
"""calibrate_networks.py WORK [TABLE] -- whole networks on this machine, by the default model and by what cdmpp-tune calibrate makes of it.

In WORK: calibrate once, --seconds SECONDS (default 300), of its usual tasks; then each network is estimated by either model, with schedules that this model
chooses, and run with them (cdmpp-replay --run --cpu-time, one thread). Prints words for figures.py put; writes a Markdown table to TABLE. A step that is
done is not done again. From the environment: B, SECONDS, NETWORKS (default: the ten of the test set calibrate-networks-3; NAME@SIZE is one at another input size)."""
import json, os, subprocess, sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import figures

B = os.path.abspath(os.environ.get("B", "build/release"))
TEST = "resnet-152 vgg-16 densenet-161 yolov5n gpt2 bert-large resnet3d-18 mobilenet-v2@160 squeezenet-1.1@320 inception-v1@128"

def run(work, *words):
    env = dict(os.environ, XDG_CACHE_HOME=os.path.join(work, "cache"))
    p = subprocess.run([os.path.join(B, words[0]), *words[1:]], cwd=work, env=env, capture_output=True, text=True)
    if p.returncode:
        sys.exit("calibrate_networks: %s: status %d\n%s" % (" ".join(words), p.returncode, p.stderr))
    return p.stdout

def once(path, make):
    if not os.path.exists(path):
        text = make()
        figures.write(path, text)
    with open(path) as f:
        return json.load(f)

def estimate(work, network, model):
    """Of one network: seconds said, low, high, and measured."""
    name, _, size = network.partition("@")
    words = ("cdmpp-replay", "--network", name, *(("--input-size", size) if size else ()), "--run", "--cpu-time", "--json") + (("--cost-model", model) if model else ())
    env = os.environ.get("CDMPP_DEFAULT_MODEL")
    os.environ["CDMPP_DEFAULT_MODEL"] = os.path.join(B, "models", sorted(f for f in os.listdir(os.path.join(B, "models")) if f.endswith(".cdmpp"))[-1]) if not model else ""
    try:
        d = once(os.path.join(work, "%s-%s.json" % (network, "here" if model else "default")), lambda: run(work, *words))
    finally:
        os.environ.pop("CDMPP_DEFAULT_MODEL")
        if env is not None:
            os.environ["CDMPP_DEFAULT_MODEL"] = env
    e = d["result"]["estimates"][0]
    return {"s": e["latency_s"], "low": e["low_s"], "high": e["high_s"], "run": e["run_s"]}

def main(work, table):
    work = os.path.abspath(work)
    os.makedirs(work, exist_ok=True)
    seconds, networks = os.environ.get("SECONDS", "300"), os.environ.get("NETWORKS", TEST).split()
    c = once(os.path.join(work, "calibrate.json"), lambda: run(work, "cdmpp-tune", "calibrate", "--seconds", seconds, "--json"))["result"]
    rows = ["| network | default model ms | measured ms | error % | calibrated ms | measured ms | error % | in the 90 % interval, before, after |",
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |"]
    error = {"default": [], "here": []}
    inside = {"default": 0, "here": 0}
    for n in networks:
        got = {"default": estimate(work, n, None), "here": estimate(work, n, "here.cdmpp")}
        for k, e in got.items():
            error[k].append(100 * (e["s"] / e["run"] - 1))
            inside[k] += e["low"] <= e["run"] <= e["high"]
        cells = ["%.3g | %.3g | %+.1f" % (1e3 * e["s"], 1e3 * e["run"], error[k][-1]) for k, e in got.items()]
        rows.append("| %s | %s | %s |" % (n, " | ".join(cells), ", ".join("yes" if e["low"] <= e["run"] <= e["high"] else "no" for e in got.values())))
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
