#!/usr/bin/env python3
"""left_out.py WORK -- networks that a model never saw: each of the 17 networks of examples/zen5 is left out of the training once.

A program of the left-out network is in no training, scaler or early stopping. A task that another network has, too, counts as the left-out one's. Arms:
    cdmpp     configs/own.yaml, program alone: with rows beside it networks were no better (PART=valid)
    XGBoost   configs/baseline-xgb.yaml with the point of least MAPE (tilted); its median is the untilted one
    prior     the analytic time and one factor
and parts of the facts left out, with fewer trees. Of each program both answers are kept: the point, and the median that orders and sums take. The fastest record of a task
(of those with five or more on a device) is asked about in these folds, and in three draws of tasks.

Writes WORK/*.md (tables) and prints words for figures.py put. A step that is done is not done again. From the environment: B, JOBS, SEEDS (default 1,2,3),
PART: test, or valid for choices, ARMS (some). With valid the networks are two halves that know nothing of each other: each network is left out of its half. What is better in both
halves may be taken; a half alone decides nothing about itself."""
import json, lzma, math, os, subprocess, sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import figures, kshot, quick

B, JOBS, PART = kshot.B, kshot.JOBS, os.environ.get("PART", "test")
DATA = "examples/zen5/"
TASKS = DATA + "zen5.tasks.json.xz"
DEVICES = ("zen5-avx512", "zen5-avx2")
DRAWS = (2, 3, 4) # of tasks
SEEDS = [int(s) for s in os.environ.get("SEEDS", "1,2,3").split(",")]
ONLY = os.environ.get("ARMS", "").split() # while something is chosen: no tables
LEAST = 5 # records of a task on a device whose fastest is asked about
HALF = ("bert_medium", "densenet_121", "inception_v3", "dqn", "gru", "shufflenet_v2", "resnet_18", "vgg_16", "mlp") # of PART=valid
FEW = ("model.members=[program]", "train.facts=prior", "model.folds=1", "train.rounds=100", "train.eta=0.1", "train.colsample=0.25")
ARMS = { # configuration, settings
    "cdmpp": ("own", ("model.members=[program]", "train.facts=prior", "train.rounds=120", "train.eta=0.2")),
    "XGBoost": ("baseline-xgb", ("predict.point=mape", "filter.max_per_task=0")),
    "prior": ("own", ("model.members=[program]", "model.folds=1", "train.facts=prior", "train.rounds=1", "train.eta=0.000001")),
}
WITHOUT = {"traffic": "lines that each size of cache fetches", "work": "counts of instructions", "cycles": "cycles of the core's parts", "shape": "form of the main loop",
           "threads": "parallel loops", "times": "analytic times as columns"}
ABLATION = [("all", "all", FEW)] + [("no-" + g, "without %s: %s" % (g, t), FEW + ("train.facts_without=[%s]" % g,)) for g, t in WITHOUT.items()]
ABLATION += [("no-facts", "prior alone corrected by TVM's columns", FEW + ("train.facts_without=[%s]" % ",".join(WITHOUT),)),
             ("no-prior", "facts as columns, no prior", FEW[:1] + FEW[2:] + ("train.facts=columns",)), ("neither", "TVM's columns alone", FEW[:1] + FEW[2:] + ("train.facts=none",))]
ARMS.update((name, ("own", settings)) for name, _, settings in ABLATION)

# ---- folds ----
def short(name):
    return name[1:].split(",", 1)[0]

def networks():
    """{short name: its tasks}"""
    with lzma.open(os.path.join(figures.ROOT, TASKS), "rt") as f:
        return {short(n): {t["workload_key"] for t in tasks} for n, tasks in json.load(f)["networks"].items()}

def half_of(name, all_):
    return [n for n in all_ if (n in HALF) == (name in HALF)]

def of_networks(data):
    """(name, data, settings, tasks that are asked about) of each fold."""
    sets = networks()
    for n in sorted(sets):
        rest = ["split.train_names=[%s]" % ",".join(o for o in half_of(n, sorted(sets)) if o != n)] if PART == "valid" else []
        yield n, data, ["split.kind=network", "split.test_names=[%s]" % n, "split.valid=0.15", *rest], sets[n]

def of_tasks(work):
    """Draws of a fifth of all tasks."""
    keys = set().union(*networks().values())
    for seed in DRAWS if PART == "test" else ():
        asked = {k for k in keys if kshot.draw("left out", seed, k) % 5 == 0}
        logs = os.path.join(work, "draw-%d" % seed)
        data = kshot.once(logs + ".h5", lambda out: (write_logs(logs, keys - asked), extract(out, logs)))
        yield "tasks%d" % seed, data, ["split.kind=task", "split.valid=0.15", "split.test=0.01"], asked

def write_logs(folder, keys):
    lines = {}
    for d, line in records(keys):
        lines.setdefault(d, []).append(line)
    for d, v in lines.items():
        os.makedirs(os.path.join(folder, d), exist_ok=True)
        figures.write(os.path.join(folder, d, "records.json"), "".join(v))

def extract(out, source):
    quick.sh(B + "/cdmpp-extract", "-q", "-j", JOBS, "--tasks", TASKS, "--out", out, source)

def records(keys):
    """(device, line) of the tasks."""
    for d in DEVICES:
        with lzma.open(os.path.join(figures.ROOT, DATA, "measure_records", d, "records.json.xz"), "rt") as f:
            for line in f:
                r = json.loads(line)
                if r["r"][1] == 0 and r["i"][0][0] in keys:
                    yield d, line

# ---- training and asking ----
def train(out, data, arm, fold, seed):
    config, settings = ARMS[arm]
    words = ("data.files=" + data, "train.seed=%d" % seed, "split.seed=%d" % seed, *fold, *settings)
    quick.sh(B + "/cdmpp-train", "configs/%s.yaml" % config, "--quiet", "--json", "-j", JOBS, "--out", out, *[w for s in words for w in ("--set", s)])

def ask(out, model, keys):
    """A line for each record: device, task, measured, point, median, low, high."""
    asked = list(records(keys))
    r = subprocess.run([B + "/cdmpp-predict", "--cost-model", model, "--tasks", TASKS, "--stream", "--eval", "-j", "1"], input="".join(l for _, l in asked),
                       stdout=subprocess.PIPE, text=True, cwd=figures.ROOT)
    answers = [json.loads(l) for l in r.stdout.splitlines()]
    if r.returncode not in (0, 3) or len(answers) != len(asked): # 3: some records were rejected, as TVM rejects them
        raise SystemExit("left_out: cdmpp-predict: status %d, %d answers of %d" % (r.returncode, len(answers), len(asked)))
    rows = []
    for (d, line), a in zip(asked, answers):
        if "error" not in a:
            rows.append([d, json.loads(line)["i"][0][0], a["measured_s"], a["latency_s"], 1 / a["score"], a["low_s"], a["high_s"]])
    figures.write(out, json.dumps({"rows": rows, "ratio": best_of(model)}))

def best_of(model):
    """Measured over median of the fastest record of tasks that a fold did not see: what a replay multiplies such a record with."""
    with open(os.path.join(figures.ROOT, model), "rb") as f:
        head = f.read(32)
        h = json.loads(f.read(int.from_bytes(head[16:24], "little")))
    v = h["best"]["validation"]
    return v["ratio"] if v["n"] >= 8 else 1

def answers(work, arm, fold, seed):
    name, data, settings, keys = fold
    at = os.path.join(work, "%s-%s-%d" % (arm, name, seed))
    def both(out):
        train(at + ".cdmpp", data, arm, settings, seed)
        ask(out, at + ".cdmpp", keys)
        os.remove(at + ".cdmpp")
        print("results: left_out, %s, %s, seed %d done" % (arm, name, seed), file=sys.stderr, flush=True)
    with open(kshot.once(at + ".json", both)) as f:
        return json.load(f)

# ---- figures ----
def quantile(v, q):
    v = sorted(v)
    k = q * (len(v) - 1)
    i = int(k)
    return v[i] if i + 1 == len(v) else v[i] + (k - i) * (v[i + 1] - v[i])

def figures_of(a, what):
    """MAPE, median, mean abs ln in %, %, 1; what: 3 the point, 4 the median."""
    r = [x[what] / x[2] for x in a["rows"]]
    off = [100 * abs(x - 1) for x in r]
    return {"n": len(r), "mape": figures.mean(off), "median": quantile(off, 0.5), "ln": figures.mean(abs(math.log(x)) for x in r),
            "inside": 100 * figures.mean(x[5] <= x[2] <= x[6] for x in a["rows"])}

def fastest(a):
    """(device, point, median, median times the training's ratio) over measured, of the fastest record of each task on a device."""
    groups = {}
    for x in a["rows"]:
        groups.setdefault((x[0], x[1]), []).append(x)
    for (d, _), rows in sorted(groups.items()):
        if len(rows) >= LEAST:
            x = min(rows, key=lambda v: v[2])
            yield d, x[3] / x[2], x[4] / x[2], x[4] / x[2] * a["ratio"]

# ---- tables ----
POINT, MEDIAN = 3, 4
LEARNED = ("cdmpp", "XGBoost")
def mean_of(runs, what, name):
    """Of the seeds."""
    return figures.mean(figures_of(a, what)[name] for a in runs)

def table(path, head, rows):
    figures.write(path, "\n".join(["| " + " | ".join(head) + " |", "| --- | " + " | ".join(["---:"] * (len(head) - 1)) + " |"] + rows) + "\n")

def networks_table(path, runs, what):
    arms = LEARNED + ("prior",)
    kinds = (("mape", "MAPE", "%.1f"), ("median", "median", "%.1f"), ("ln", "abs(ln)", "%.2f")) + ((("inside", "inside, %", "%.1f"),) if what == POINT else ())
    head = ["network", "programs"] + ["%s: %s" % (a, t) for a in arms for _, t, _ in kinds]
    names = sorted(runs["cdmpp"])
    value = {n: [mean_of(runs[a][n].values(), what, k) for a in arms for k, _, _ in kinds] for n in names}
    forms = [f for _ in arms for _, _, f in kinds]
    line = lambda name, n, v: "| %s | %d | %s |" % (name, n, " | ".join(f % x for f, x in zip(forms, v)))
    count = {n: figures_of(runs["cdmpp"][n][SEEDS[0]], what)["n"] for n in names}
    rows = [line(n, count[n], value[n]) for n in names]
    rows.append(line("**mean**", sum(count.values()), [figures.mean(c) for c in zip(*value.values())]))
    table(path, head, rows)

def by_seed(runs, arm, what, name):
    """Mean over the networks, of each seed."""
    seeds = list(next(iter(runs[arm].values())))
    return [figures.mean(figures_of(a[s], what)[name] for a in runs[arm].values()) for s in seeds]

def with_spread(v, form):
    return form % figures.mean(v) if len(v) == 1 else (form + " +- " + form) % (figures.mean(v), figures.deviation(v))

def seeds_table(path, runs):
    rows = []
    for arm in LEARNED:
        for what, text in ((POINT, "point"), (MEDIAN, "median")):
            v = [by_seed(runs, arm, what, k) for k in ("mape", "median", "ln", "inside")]
            most = [max(figures_of(a[s], what)["mape"] for a in runs[arm].values()) for s in range_of(runs[arm])]
            cells = [with_spread(x, form) for x, form in zip(v + [most], ("%.1f", "%.1f", "%.3f", "%.1f", "%.1f"))]
            rows.append("| %s, %s | %d | %s |" % (arm, text, len(v[0]), " | ".join(cells)))
    table(path, ["answer", "seeds", "MAPE", "median", "abs(ln)", "inside, %", "MAPE of the worst network"], rows)

def range_of(of_network):
    return list(next(iter(of_network.values())))

def spread_of(v):
    """(median of the ratios, p90 of the larger of ratio and its inverse)."""
    return quantile(v, 0.5), quantile([max(x, 1 / x) for x in v], 0.9)

def fastest_table(path, groups):
    """groups: (split, arm, answers)"""
    rows, found = [], {}
    for split, arm, all_ in groups:
        for d in DEVICES + ("both",):
            f = [x for a in all_ for x in fastest(a) if d in (x[0], "both")]
            if not f:
                continue
            each = [spread_of([x[k] for x in f]) for k in (1, 2, 3)]
            found[split, arm, d] = (len(f), each)
            rows.append("| %s | %s | %s | %d | %s |" % (split, d, arm, len(f), " | ".join("%.2f | %.2f" % e for e in each)))
    table(path, ["split", "device", "model", "tasks", "point", "p90", "median", "p90", "corrected", "p90"], rows)
    return found

def ablation_table(path, runs):
    rows = []
    for arm, text, _ in ABLATION:
        f = [by_seed(runs, arm, w, k)[0] for w, k in ((POINT, "mape"), (POINT, "median"), (POINT, "ln"), (MEDIAN, "mape"), (MEDIAN, "ln"))]
        rows.append("| %s | %s |" % (text, " | ".join("%.1f" % x if x > 3 else "%.3f" % x for x in f)))
    table(path, ["facts", "MAPE", "median", "abs(ln)", "MAPE of the median answer", "its abs(ln)"], rows)

def figure(name, value, form, unit="", n=0, seeds=0, spread=None):
    print("figure:%s=%s,%s,%d,%d%s" % (name, form % value, unit, n, seeds, "" if spread is None or seeds < 2 else ",%.3g" % spread))

def tell(runs, found):
    n = sum(figures_of(a[SEEDS[0]], POINT)["n"] for a in runs["cdmpp"].values())
    for arm in LEARNED:
        for what, text in ((POINT, "point"), (MEDIAN, "median")):
            for k, form, unit in (("mape", "%.1f", "%"), ("ln", "%.3f", "")) + ((("inside", "%.1f", "%"),) if what == POINT else ()):
                v = by_seed(runs, arm, what, k)
                figure("%s-%s-%s" % (arm.lower(), text, k), figures.mean(v), form, unit, n, len(v), figures.deviation(v))
    figure("cdmpp-worst", max(mean_of(a.values(), POINT, "mape") for a in runs["cdmpp"].values()), "%.1f", "%", n, len(SEEDS))
    figure("ln-ratio", figures.mean(by_seed(runs, "cdmpp", POINT, "ln")) / figures.mean(by_seed(runs, "XGBoost", POINT, "ln")), "%.3f", "", n, len(SEEDS))
    figure("ln-ratio-medians", figures.mean(by_seed(runs, "cdmpp", MEDIAN, "ln")) / figures.mean(by_seed(runs, "XGBoost", MEDIAN, "ln")), "%.3f", "", n, len(SEEDS))
    for (split, arm, d), (count, each) in found.items():
        if d == "both":
            for e, text in zip(each, ("point", "median", "corrected")):
                figure("fastest-%s-%s-%s" % (split.split()[0], arm.lower(), text), e[0], "%.3f", "", count)
                figure("fastest-%s-%s-%s-p90" % (split.split()[0], arm.lower(), text), e[1], "%.3f", "", count)

def main(work):
    os.makedirs(work, exist_ok=True)
    at = lambda name: os.path.join(work, name)
    data = kshot.once(at("zen5.h5"), lambda out: extract(out, DATA + "measure_records"))
    nets, draws, runs = list(of_networks(data)), list(of_tasks(work)), {}
    seeds = {arm: SEEDS if arm in LEARNED else SEEDS[:1] for arm in ARMS}
    for arm in [a for a in ARMS if not ONLY or a in ONLY]:
        runs[arm] = {f[0]: {s: answers(work, arm, f, s) for s in seeds[arm]} for f in nets}
        print("results: left_out, %s, %s: MAPE %s, abs(ln) %s, inside %s" % (PART, arm, *(" ".join("%.3g" % x for x in by_seed(runs, arm, POINT, k)) for k in ("mape", "ln", "inside"))),
              file=sys.stderr, flush=True)
    if ONLY:
        return 0
    for name, what in (("networks", POINT), ("medians", MEDIAN)):
        networks_table(at(name + ".md"), runs, what)
    seeds_table(at("seeds.md"), runs)
    ablation_table(at("ablation.md"), runs)
    groups = [("networks left out", arm, [a[SEEDS[0]] for a in runs[arm].values()]) for arm in LEARNED]
    groups += [("tasks drawn", arm, [answers(work, arm, f, int(f[0][5:])) for f in draws]) for arm in LEARNED if draws]
    tell(runs, fastest_table(at("fastest.md"), groups))
    return 0

if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) if len(sys.argv) == 2 else __doc__)
