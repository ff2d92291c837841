#!/usr/bin/env python3
"""threads24.py WORK -- models of one CPU with 24 threads, judged by TLP's protocol; prints words for figures.py put, writes Markdown tables to WORK.

Records: thaisacs/TVM-Ansor-Bench, of which $ANSOR_BENCH names the git directory; task definitions and extract.py: $CDMPP_DATA/tvm-ansor-bench. LOGS are its
folders that are read, Ansor's own searches in two layouts; copies of a program become one. Held out are the tasks of HELD in both layouts, wherever
they occur, with all their programs; of other tasks EACH programs of a log are read. All models train on the same TRAIN programs of a task and are asked for
all of the held-out tasks:

    top-k = sum(weight x best) / sum(weight x best among the k best-scored)

A step that is done is not done again. From the environment: B, JOBS, TRAIN, BEST, SEEDS (of the trainings of SEEDED; default 1,2,3), and MODELS, names with ; between (default: all)."""
import json, math, os, shutil, sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import figures, quick, threads24_score as score

B, JOBS = os.environ.get("B", "build/release"), os.environ.get("JOBS", "1")
TRAIN, BEST, SEEDS = os.environ.get("TRAIN", "100"), os.environ.get("BEST", "0"), [int(s) for s in os.environ.get("SEEDS", "1,2,3").split(",")]
LOGS, EACH = r"^(old-ansor/search_space_1000|search_space_task_1000/original-results)/original-results-01", 150
HELD, LAYOUTS, DEVICE = ("resnet_50", "mobilenet_v2", "resnext_50"), ("nhwc", "nchwc"), "cpu24"
SHORT = ("model.folds=1", "predict.point=median", "train.facts=none", "net.device=false", "train.rounds=200", "train.early_stop=40", "fit.epochs=10",
         "filter.facts=true") # of all models alike: 200 programs of adaptive pools, which no held-out network has
# Nobody says which CPU it is. Its records say 24 threads and a target without -mcpu: vectors of 128 bits, 8 operations of a core and clock. All other
# numbers are of no measurement: they are usual for a server's core, were written down once and were not tried out.
DESCRIBED = """- name: cpu24
  kind: cpu
  clock_mhz: 2700
  cores: 24
  cores_used: 24
  lanes: 4
  simd_bits: 128
  bandwidth_gb_s: 100
  l1_kb: 32
  l2_kb: 1024
  l3_kb: 32768
"""
PERCEPTRON = "tenset_mlp" # a script in the place of a configuration
# name: what it reads, configuration, settings; a setting that ends in = gets the path of the description. TenSet's and TLP's networks have their published sizes.
MODELS = {
    "XGBoost": ("sums and maxima of rows", "baseline-xgb", ()),
    "XGBoost, TenSet's objective": ("rows", "baseline-xgb", ("model.members=[rows]", "train.objective=pack_sum", "train.loss=huber")),
    "MLP": ("sums and maxima of rows", "baseline-mlp", ()),
    "TenSet's MLP, order": ("rows", PERCEPTRON, ()),
    "TLP, order": ("steps of the schedule", "baseline-tlp", ("fit.loss=1lambdarank", "fit.figure=loss", "net.width=256", "net.embed=256", "net.decoder_width=128",
                   "net.log_values=false", "fit.batch=512", "fit.epochs=50")),
    "cdmpp": ("rows and facts", "own", ("train.loss=huber", "model.members=[rows,program]", "model.order=[rows,program]", "train.facts=prior",
              "train.max_bin=256", "train.max_depth=8", "train.lambda=3", "train.rounds=600", "train.eta=0.05", "device.file=")),
}

SEEDED = ("XGBoost", "MLP", "cdmpp") # trained once for each seed, with networks held out; their figures are means
FAMILY = "resnet_", "resnext_", "wide_resnet_" # how the names of a family begin

def once(path, make):
    if not os.path.exists(path):
        make(path + ".tmp")
        os.replace(path + ".tmp", path)
    return path

# ---- data ----
def tasks_of(data, google, out):
    """One key stands for two pools: GoogLeNet's logs have definitions of their own."""
    import lzma
    with lzma.open(os.path.join(data, "tasks_googlenet.pkl.xz" if google else "tasks.pkl.xz")) as f, open(out, "wb") as to:
        shutil.copyfileobj(f, to)

def key_of(name):
    return name[name.rfind('["'):-len(".json")]

def thin(path, name):
    """EACH lines of a log, drawn by the place of a line."""
    with open(path) as f:
        lines = f.readlines()
    kept = sorted(sorted(range(len(lines)), key=lambda i: score.draw(name, i))[:EACH])
    figures.write(path, "".join(lines[i] for i in kept))

def held_out():
    nets = networks()
    return {t["workload_key"] for h in HELD for l in LAYOUTS for t in nets["%s-%s" % (h, l)]}

def copy_logs(data, out):
    quick.sh("python3", "-B", os.path.join(data, "extract.py"), out, "--git", os.environ["ANSOR_BENCH"], "--kind", LOGS)
    keys = held_out()
    for d, _, files in os.walk(out):
        for name in files:
            if name.endswith("].json") and key_of(name) not in keys:
                thin(os.path.join(d, name), name)
    for d, _, _ in list(os.walk(out)):
        if "googlenet" in os.path.basename(d):
            to = os.path.join(out + ".google", os.path.relpath(d, out))
            os.makedirs(os.path.dirname(to), exist_ok=True)
            os.rename(d, to)

def data_set(work, out):
    data = os.path.join(os.environ["CDMPP_DATA"], "tvm-ansor-bench")
    logs, parts = once(os.path.join(work, "logs"), lambda o: copy_logs(data, o)), []
    for google in (False, True):
        name = os.path.join(work, "google" if google else "others")
        once(name + ".pkl", lambda o: tasks_of(data, google, o))
        parts.append(once(name + ".h5", lambda o: quick.sh(B + "/cdmpp-extract", "-q", "-j", JOBS, "--ids", "--steps", "--device", DEVICE, "--tasks", name + ".pkl",
                          "--tasks", os.path.join(data, "networks.json"), "--out", o, logs + ".tmp.google" if google else logs)))
    quick.sh(B + "/cdmpp-extract", "-q", "--merge-copies", out, *parts)

def networks():
    with open(os.path.join(os.environ["CDMPP_DATA"], "tvm-ansor-bench/networks.json")) as f:
        return json.load(f)

# ---- splits ----
def hash_of(key):
    return json.loads(key)[0]

def names(work, data, split):
    """What a configuration of that split says beside the settings."""
    nets = networks()
    held = ["%s-%s" % (h, l) for h in HELD for l in LAYOUTS]
    if split == "networks":
        return "split: {kind: network, test_names: %s}\n" % json.dumps(held)
    if split == "layout":
        return "split: {kind: network, test_names: %s}\n" % json.dumps(sorted(n for n in nets if n.endswith("-nchwc")))
    if split == "family":
        return "split: {kind: network, test_names: %s}\n" % json.dumps(sorted(n for n in nets if n.startswith(FAMILY)))
    known = set(train(work, data, "XGBoost", "networks")["keys"]) # tasks without a valid record are none of the data set's
    test = {t["workload_key"] for h in held for t in nets[h]} & known
    shapes = {hash_of(k) for k in test}
    others = sorted(k for k in known if hash_of(k) not in shapes)
    valid = [k for k in others if score.draw("hash", hash_of(k)) % 8 == 0]
    return "split: {kind: task, test_names: %s, valid_names: %s, train_names: %s}\n" % tuple(json.dumps(sorted(v)) for v in (test, valid, set(others).difference(valid)))

# ---- models ----
def described(work):
    path = os.path.join(work, "devices.yaml")
    figures.write(path, DESCRIBED)
    return os.path.abspath(path)

def settings(work, data, model, split, seed):
    _, config, more = MODELS[model]
    path = os.path.join(work, "%s-%s.yaml" % (split, config))
    figures.write(path, "base: %s\n%s" % (os.path.abspath(os.path.join(figures.ROOT, "configs", config + ".yaml")), names(work, data, split)))
    words = SHORT + ("data.files=" + data, "data.devices=[]", "split.seed=1", "split.valid=0.1", "filter.max_per_task=0", "split.train_per_task=" + TRAIN,
                     "split.train_best=" + BEST, "train.memory=8192", "train.seed=%d" % seed, "fit.seed=%d" % seed) + tuple(m + described(work) if m.endswith("=") else m for m in more)
    return [path] + [w for s in words for w in ("--set", s)]

def judged(net, split):
    return {"layout": net.endswith("-nchwc"), "family": net.startswith(FAMILY)}.get(split, net.split("-")[0] in HELD)

def report(work, data, model, split, seed, stem):
    quick.sh(B + "/cdmpp-train", "--quiet", "-j", JOBS, "--out", stem + ".cdmpp", "--report", stem + ".html", *settings(work, data, model, split, seed))
    for end in (".html", ".json"):
        os.remove(stem + end)

def perceptron(work, data, split, seed, stem):
    """The script reads from a report which programs train: those of all other models."""
    parts = os.path.join(work, split + "-parts")
    once(parts + ".csv", lambda out: (report(work, data, "XGBoost", split, seed, parts), os.replace(parts + ".csv", out)))
    quick.sh("python3", "-B", os.path.join(figures.ROOT, "scripts/results", PERCEPTRON + ".py"), data, parts + ".csv", stem + ".csv", str(seed))

def train(work, data, model, split, seed=1):
    stem = os.path.join(work, "%s-%s-%d" % (split, model.replace(" ", "-").replace(",", "").replace("'", ""), seed))
    def make(out):
        perceptron(work, data, split, seed, stem) if MODELS[model][1] == PERCEPTRON else report(work, data, model, split, seed, stem)
        figures.write(out, json.dumps(score.judge(stem + ".csv", {n: t for n, t in networks().items() if judged(n, split)})))
        os.remove(stem + ".csv")
    with open(once(stem + ".figures", make)) as f:
        return json.load(f)

def trained(work, data, model, split):
    """Figures of the seeds of a model, one after another."""
    return [train(work, data, model, split, s) for s in (SEEDS if model in SEEDED and split == "networks" else [1])]

# ---- noise ----
NOISES = ("first five repeats for the last five", "one record for another of the same program", "the true times of all programs, moved by the ratios of these two")

def records(work):
    """(task, steps without the extents that they note, times) of each valid record of a held-out task."""
    keys = held_out()
    for top in ("logs", "logs.tmp.google"):
        for d, _, files in os.walk(os.path.join(work, top)):
            for name in sorted(files):
                key = key_of(name) if name.endswith("].json") else None
                if key not in keys:
                    continue
                with open(os.path.join(d, name)) as f:
                    for r in map(json.loads, f):
                        if r["r"][1] == 0:
                            yield key, json.dumps([s[:3] + [0] + s[4:] if s[0] == "SP" else s for s in r["i"][1][1]]), r["r"][0]

def moved(all_, copies):
    """A model that knows the true times, judged by measurements of them. Of two measurements of a program the slower one is off, by their ratio: so is every second program here, by a
    ratio that is drawn from programs of the same decade of seconds."""
    ratio = {}
    for y, p in copies.values():
        for t, q in zip(y, p):
            ratio.setdefault(math.floor(math.log10(t)), []).append(max(t, q) / min(t, q))
    def off(t, *words):
        of = ratio[min(ratio, key=lambda d: abs(d - math.floor(math.log10(t))))]
        return of[score.draw("noise", *words) % len(of)] if score.draw("off", *words) % 2 else 1
    return {k: ([t * off(t, k, i) for i, t in enumerate(y)], y) for k, y in all_.items()}

def noise(work):
    """Two measurements against each other: halves of the ten repeats, two records of one program; and true times, moved by the ratios of these two."""
    halves, first, copies, all_ = {}, {}, {}, {}
    for key, steps, times in records(work):
        n = len(times) // 2
        y, p = halves.setdefault(key, ([], []))
        y.append(score.median(times[n:])), p.append(score.median(times[:n]))
        all_.setdefault(key, []).append(score.median(times))
        steps = (key, score.draw(steps))
        if steps in first:
            y, p = copies.setdefault(key, ([], []))
            y.append(score.median(times)), p.append(first.pop(steps))
        else:
            first[steps] = score.median(times)
    return [score.summary({k: (*v, v[1]) for k, v in t.items()}, networks()) for t in (halves, {k: v for k, v in copies.items() if len(v[0]) >= 20}, moved(all_, copies))]

def noises(work):
    def make(out):
        figures.write(out, json.dumps(noise(work)))
    with open(once(os.path.join(work, "noise.figures"), make)) as f:
        return json.load(f)

# ---- tables ----
def top(f, k):
    """Mean of the networks."""
    return score.mean([t[k] for t in f["top"].values()])

def cell(form, values):
    return form % score.mean(values) + (" +- " + form % figures.deviation(values) if len(values) > 1 else "")

def line(name, reads, runs, seconds=True):
    """One row: means of the runs, and their deviation where there are several."""
    own = [cell("%.1f", [f[k] for f in runs]) if seconds else "-" for k in ("mape", "median")]
    tops = [cell("%.3f", [top(f, k) for f in runs]) for k in range(len(score.KS))]
    return "| %s |" % " | ".join([name, reads, *own, cell("%.3f", [f["spearman"] for f in runs]), cell("%.1f", [f["pairwise"] for f in runs]), *tops])

HEAD = "| model | reads | MAPE | median | Spearman | pairs in order | top-1 | top-5 | top-10 | top-20 |\n| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"

def guesses(model):
    return "order" in model or "objective" in model # the seconds of a loss of order alone are none

def by_network(path, found):
    nets = sorted(next(iter(found.values()))[0]["top"])
    with open(path, "w") as f:
        f.write("| model | %s |\n| --- |%s\n" % (" | ".join(nets), " ---: |" * len(nets)))
        for m, runs in found.items():
            f.write("| %s | %s |\n" % (m, " | ".join("%.3f, %.3f" % tuple(score.mean([r["top"][n][k] for r in runs]) for k in (0, 1)) for n in nets)))

def tried(runs, share, which):
    return score.mean([r["trials"][share][which] for r in runs])

def trial_table(path, found):
    any_ = next(iter(found.values()))
    with open(path, "w") as f:
        f.write("| order | within 1 % | within 5 % |\n| --- | ---: | ---: |\n")
        for name, runs, which in [("Ansor's own, of the log", any_, "log"), ("random, mean", any_, "random")] + [("score of " + m, v, "score") for m, v in found.items()]:
            f.write("| %s | %.1f | %.1f |\n" % (name, tried(runs, "1", which), tried(runs, "5", which)))

def tell(found, hashes):
    """Words for figures.py put: what the goals are of, the order and the seconds of one model."""
    runs = found["cdmpp"]
    n, tasks, searches = runs[0]["n"], runs[0]["tasks"], runs[0]["trials"]["1"]["n"]
    print("figure:n=%d figure:tasks=%d figure:searches=%d figure:train=%s figure:seeds=%d" % (n, tasks, searches, TRAIN, len(runs)))
    for name, v in (("top1", [top(f, 0) for f in runs]), ("top5", [top(f, 1) for f in runs]), ("spearman", [f["spearman"] for f in runs]), ("hashes-top1", [top(hashes, 0)])):
        print("figure:%s=%.3f,,%d,%d" % (name, score.mean(v), n, len(v)))
    for name in ("mape", "median"):
        print("figure:%s=%.1f,%%,%d,%d" % (name, score.mean([f[name] for f in runs]), n, len(runs)))
    print("figure:trials=%.2f,,%d,%d" % (tried(runs, "5", "score") / tried(runs, "5", "log"), searches, len(runs)))

def main_table(path, found, noise):
    one = next(iter(found.values()))[0]
    random = [score.mean([t[k] for t in one["random"].values()]) for k in range(len(score.KS))]
    with open(path, "w") as f:
        f.write(HEAD + "\n" + "".join(line(m, MODELS[m][0], v, not guesses(m)) + "\n" for m, v in found.items()))
        f.write("| random (mean) | nothing | - | - | 0.000 | 50.0 | %s |\n" % " | ".join("%.3f" % v for v in random))
        f.write("".join(line("noise: " + name, "%d programs" % v["n"], [v]) + "\n" for name, v in zip(NOISES, noise)))

def main(work):
    os.makedirs(work, exist_ok=True)
    data = once(os.path.join(work, "data.h5"), lambda o: data_set(work, o))
    models = [m for m in MODELS if m in os.environ.get("MODELS", ";".join(MODELS)).split(";")]
    found = {m: trained(work, data, m, "networks") for m in models}
    main_table(os.path.join(work, "main.md"), found, noises(work))
    by_network(os.path.join(work, "networks.md"), found)
    trial_table(os.path.join(work, "trials.md"), found)
    with open(os.path.join(work, "splits.md"), "w") as f:
        f.write(HEAD.replace("| model | reads |", "| model | held out |") + "\n")
        for split, what in (("hashes", "networks and their hashes"), ("layout", "layout NCHWc"), ("family", "all residual networks")):
            for m in ("XGBoost", "cdmpp"):
                f.write(line(m, what, trained(work, data, m, split), not guesses(m)) + "\n")
    tell(found, train(work, data, "cdmpp", "hashes"))

if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) if len(sys.argv) == 2 else __doc__)
