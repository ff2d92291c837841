#!/usr/bin/env python3
"""unseen.py WORK [TABLE] -- intervals of devices that no model saw: leave-one-device-out over the CPUs that examples/ has records of, and over the GPUs
of CDMPP_DATA/gpu-ansor where it is there.

One device is new. Two models are asked about it: `others`, trained on the other two with the law of devices that it learns, and `one`, trained on one
other device, which has the least spread alone. Its programs are asked about, and networks of its tasks: each of 12 tasks with the fastest program that was
measured of each, whose measured time is the sum. At last the default model's CPU stands for each GPU, by rooflines. "inside" is the share within the interval of 90 %.

Parts of tasks are those of kshot.py: PART=valid (default) asks tasks that no choice may not see; PART=test asks the test tasks. Prints words for
figures.py put; writes a Markdown table to TABLE. A step that is done is not done again. From the environment: B, JOBS, MOST (records of a device that
train, 3000), MOST_GPU (1500), ASKED (records that are asked about, 1000)."""
import glob, json, math, os, re, sys, tarfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
os.environ.setdefault("PART", "valid")
import figures, kshot, quick

DATA = os.environ.get("CDMPP_DATA", "")
GPUS = ("k80", "mi50", "v100")
B, JOBS, PART = kshot.B, kshot.JOBS, kshot.PART
MOST_GPU, ASKED = int(os.environ.get("MOST_GPU", "1500")), int(os.environ.get("ASKED", "1000"))
OF_NETWORK, NETWORKS = 12, 40

def tasks_of(kind):
    return kshot.TASKS if kind == "cpu" else ["--tasks", DATA + "/gpu-ansor/network_info"]

def gpu_records(gpu):
    with tarfile.open(DATA + "/gpu-ansor/%s.tar.xz" % gpu, "r|xz") as t:
        for m in t:
            if m.isfile() and m.name.endswith(".json"):
                lines = t.extractfile(m).read().decode().splitlines(True)
                for line in sorted(lines, key=lambda l: kshot.draw("line", l))[:100]: # of a task
                    r = json.loads(line)
                    if r["r"][1] == 0:
                        yield r["i"][0][0], line

def write_logs(work, kind, device):
    """train/DEVICE, asked/DEVICE: records of tasks that train, that are asked about."""
    all_ = [(kshot.part_of(k), k, l) for k, l in (kshot.records(device) if kind == "cpu" else gpu_records(device))]
    most = kshot.MOST if kind == "cpu" else MOST_GPU
    for folder, lines in (("train", kshot.sample([(k, l) for p, k, l in all_ if p == "train"], 1, kshot.OF_TASK, most)),
                          ("asked-" + PART, kshot.sample([(k, l) for p, k, l in all_ if p == PART], 0, kshot.OF_TEST, ASKED))):
        os.makedirs(os.path.join(work, folder, device), exist_ok=True)
        figures.write(os.path.join(work, folder, device, "records.json"), "".join(lines))

def extract(work, kind, device, out):
    quick.sh(B + "/cdmpp-extract", "-q", "-j", JOBS, *tasks_of(kind), "--out", out, os.path.join(work, "train", device))

def train(work, kind, devices, out):
    more = () if kind == "cpu" else ("--set", "train.facts=none")
    quick.sh(B + "/cdmpp-train", "configs/default.yaml", "--quiet", "-j", JOBS, "--out", out, "--set", "device.file=" + os.path.abspath("configs/devices.yaml"),
             "--set", "data.files=[%s]" % ",".join(os.path.abspath(os.path.join(work, d + ".h5")) for d in devices), *more)

def fastest(path):
    """The fastest record of each task: (seconds, line)."""
    best = {}
    with open(path) as f:
        for line in f:
            r = json.loads(line)
            cost = sorted(r["r"][0])
            s = cost[len(cost) // 2]
            if r["i"][0][0] not in best or s < best[r["i"][0][0]][0]:
                best[r["i"][0][0]] = (s, line)
    return best

def networks(work, device):
    """A graph of drawn tasks; its file."""
    best = fastest(os.path.join(work, "asked-" + PART, device, "records.json"))
    graph = []
    for i in range(NETWORKS):
        keys = sorted(best, key=lambda k: kshot.draw("network", device, i, k))[:OF_NETWORK]
        graph.append({"name": "drawn%d" % i, "device": device, "measured_s": sum(best[k][0] for k in keys),
                      "nodes": [{"name": "n%d" % j, "op": "task", "kind": "task", "key": k} for j, k in enumerate(keys)]})
    path = os.path.join(work, "networks-%s-%s.json" % (PART, device))
    figures.write(path, json.dumps({"schema": "cdmpp.netgraph", "version": 1, "networks": graph}))
    return path

def ask_programs(work, kind, model, device, out):
    figures.write(out, quick.sh(B + "/cdmpp-predict", "--cost-model", model, "-j", JOBS, *tasks_of(kind), "--nearest", "--quiet", "--eval",
                                os.path.join(work, "asked-" + PART, device)))

def ask_networks(work, kind, model, device, out):
    figures.write(out, quick.sh(B + "/cdmpp-replay", "--cost-model", model, "-j", JOBS, *tasks_of(kind), "--quiet", "--json", "--issue-us", "0", "--measured",
                                "--graph", networks(work, device), "--records", os.path.join(work, "asked-" + PART, device), "--device", device))

def inside(answers):
    """Answers as (measured, answer, low, high): n, share inside, mean absolute logarithm, half of the width as a factor (median)."""
    v = [a for a in answers if all(x and x > 0 for x in a)]
    n = len(v)
    half = sorted(math.log(h / l) / 2 for _, _, l, h in v)
    return n, 100 * sum(l <= y <= h for y, _, l, h in v) / n, figures.mean(abs(math.log(y / a)) for y, a, _, _ in v), math.exp(half[n // 2])

def programs_of(path):
    rows = (json.loads(l) for l in open(path))
    return inside([(r.get("measured_s"), r.get("latency_s"), r.get("low_s"), r.get("high_s")) for r in rows])

def networks_of(path):
    rows = [r for r in json.load(open(path)).values() if isinstance(r, dict) and "latency_s" in r]
    return inside([(r.get("measured_s"), r["latency_s"], r["low_s"], r["high_s"]) for r in rows])

def law_of(model):
    with open(model, "rb") as f:
        found = re.search(rb'"unseen":(\{.*?\}\})', f.read(4 << 20))
    return json.loads(found[1]) if found else {}

def one_kind(work, kind, devices, rows, figure):
    at = lambda name: os.path.join(work, name)
    for d in devices:
        kshot.once(at("logs-%s-%s" % (PART, d)), lambda out: (write_logs(work, kind, d), figures.write(out, "done\n")))
        kshot.once(at(d + ".h5"), lambda out: extract(work, kind, d, out))
    sets = [("others", tuple(o for o in devices if o != d), d) for d in devices] + [("one", (o,), d) for d in devices for o in devices if o != d]
    sums = {}
    for law, train_on, new in sets:
        model = kshot.once(at("+".join(train_on) + ".cdmpp"), lambda out: train(work, kind, train_on, out))
        found = []
        for what, ask, read in (("programs", ask_programs, programs_of), ("networks", ask_networks, networks_of)):
            out = kshot.once(at("%s-%s-%s-on-%s.json" % (PART, what, "+".join(train_on), new)), lambda out: ask(work, kind, model, new, out))
            found.append(read(out))
            sums.setdefault((law, what), []).append(found[-1])
        rows.append("| %s | %s | " % (new, ", ".join(train_on)) + " | ".join("%d | %.1f | %.2f | %.1f" % f for f in found) + " |")
        print("results: unseen, %s, law %s, %s" % (PART, json.dumps(law_of(model)), rows[-1]), file=sys.stderr)
    for (law, what), v in sums.items():
        figure["%s-%s-%s" % (kind, law, what)] = (figures.mean(f[1] for f in v), sum(f[0] for f in v))

# ---- a CPU stands for a GPU ----
def fastest_of_gpu(gpu):
    """Seconds of the fastest record of each task."""
    best = {}
    with tarfile.open(DATA + "/gpu-ansor/%s.tar.xz" % gpu, "r|xz") as t:
        for m in t:
            lines = t.extractfile(m).read().splitlines() if m.isfile() and m.name.endswith(".json") else []
            found = (re.search(rb'"r":\s*\[\[([0-9.e+-]+)[^\]]*\],\s*0,', l[l.rfind(b'"r"'):]) for l in lines)
            s = [float(f[1]) for f in found if f]
            if s:
                best[json.loads(lines[0])["i"][0][0]] = min(s)
    return best

def cpu_tasks(out):
    """Definitions without the target that they were made for: else candidates would be those of its hardware."""
    d = json.loads(quick.sh(B + "/cdmpp-extract", *tasks_of("gpu"), "--write-tasks"))
    for t in d["tasks"]:
        for k in ("target", "target_host", "hardware"):
            t.pop(k, None)
    figures.write(out, json.dumps(d))

def stand_for(work, gpu, out):
    graph = [{"name": "task%d" % i, "device": gpu, "measured_s": s, "nodes": [{"name": "program", "op": "task", "kind": "task", "key": k}]}
             for i, (k, s) in enumerate(sorted(fastest_of_gpu(gpu).items()))]
    figures.write(out + ".graph", json.dumps({"schema": "cdmpp.netgraph", "version": 1, "networks": graph}))
    model = os.environ.get("MODEL") or sorted(glob.glob(B + "/models/cdmpp-default-*.cdmpp"))[-1]
    figures.write(out, quick.sh(B + "/cdmpp-replay", "--quiet", "--json", "--measured", "--graph", out + ".graph", "--tasks", os.path.join(work, "cpu.tasks.json"), "--device", gpu,
                                "--cache", os.path.join(work, "books"), "--issue-us", "0", "--allow-missing", "--cost-model", model, "-j", JOBS))

def between_kinds(work, rows, figure):
    """How often the factor between kinds holds; from which factor on it would have."""
    kshot.once(os.path.join(work, "cpu.tasks.json"), cpu_tasks)
    for gpu in GPUS:
        out = kshot.once(os.path.join(work, "stands-for-%s.json" % gpu), lambda out: stand_for(work, gpu, out))
        n, share, off, half = networks_of(out)
        rows.append("| %s | a CPU, by rooflines | %d | %.1f | %.2f | %.1f | | | | |" % (gpu, n, share, off, half))
        figure["kinds-" + gpu] = (share, n)

def main(work, table):
    rows = ["| new | trained on | programs | inside, % | abs(ln) | times | networks | inside, % | abs(ln) | times |",
            "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"]
    figure = {}
    os.makedirs(work, exist_ok=True)
    os.environ["CDMPP_NETWORK_COSTS"] = os.path.abspath(os.path.join(work, "costs.yaml")) # programs run one by one: there is no network around them
    figures.write(os.environ["CDMPP_NETWORK_COSTS"], "[]\n")
    one_kind(work, "cpu", sorted(kshot.CPUS), rows, figure)
    if DATA and not os.environ.get("CPU"):
        one_kind(work, "gpu", GPUS, rows, figure)
        between_kinds(work, rows, figure)
    if table:
        figures.write(table, "\n".join(rows) + "\n")
    for name, (share, n) in figure.items():
        print("figure:inside-%s=%.1f,%%,%d" % (name, share, n))
    return 0

if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None) if len(sys.argv) in (2, 3) else __doc__)
