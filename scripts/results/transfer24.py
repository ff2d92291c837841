#!/usr/bin/env python3
"""transfer24.py WORK TABLE BACK BOTH -- records of a CPU with 24 threads beside those of one thread: each CPU in turn is new.

Records of one thread are those of kshot.py. Those of cpu24 are the logs and the description of threads24.py, without its held-out tasks and GoogLeNet's
(whose definitions share keys with others), EACH programs of a task, so that they are as many as those of another CPU. A part of all tasks, drawn by their
keys alone, are the test: nobody trains on them. For a new CPU answer
    a  a model of k of its programs alone (configs/own.yaml)
    b  the other CPUs of one thread, c  cpu24, d  both: with k of its programs, by HOW; k = 0: the nearest device answers (cdmpp-predict --nearest)
cdmpp-train --choose picks the k. HOW: calibrate: they correct the model (cdmpp-tune calibrate --records); beside: they train beside the others.
Prints words for figures.py put; writes Markdown tables: transfer to one thread, back to cpu24, and one model of all beside models of each.
A step that is done is not done again. From the environment: ANSOR_BENCH, CDMPP_DATA, B, JOBS, SEEDS (default 1,2,3), HOW, and PART as kshot.py."""
import json, os, shutil, sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import figures, kshot, quick, threads24

B, JOBS, PART = kshot.B, kshot.JOBS, kshot.PART
HOW = os.environ.get("HOW", "calibrate")
CPUS, MANY = tuple(kshot.CPUS), threads24.DEVICE
ALL = CPUS + (MANY,)
SHOTS = (20, 100, 500)
ONE, EACH, TEST_24, FIFTH, FOURTH = 3000, 10, 20, 5, 4 # of a CPU of one thread that train; of a task of cpu24 that train, that test

# ---- parts ----
def part_of(key):
    """The same for all seeds. Tasks that kshot.py tests train here; so do those of a first draw, of which two figures were seen by mistake while settings were chosen."""
    old = any(kshot.draw(word, key) % FIFTH == 0 for word in ("test", "transfer24"))
    valid = not old and kshot.draw("transfer24-valid", key) % FIFTH == 0
    if not old and not valid and kshot.draw("transfer24-test", key) % FOURTH == 0:
        return "test"
    return "valid" if PART == "valid" and valid else "train"

# ---- records ----
def copy_logs(out):
    """Lines of cpu24 of tasks that threads24.py does not hold out, at most 4 EACH of a log: [key, line]."""
    data, logs = os.path.join(os.environ["CDMPP_DATA"], "tvm-ansor-bench"), out + ".logs"
    quick.sh("python3", "-B", os.path.join(data, "extract.py"), logs, "--git", os.environ["ANSOR_BENCH"], "--kind", threads24.LOGS)
    held, kept = threads24.held_out(), []
    for folder, _, names in sorted(os.walk(logs)):
        for name in sorted(n for n in names if n.endswith("].json")):
            key = threads24.key_of(name)
            if key in held or "googlenet" in folder:
                continue
            with open(os.path.join(folder, name)) as f:
                lines = [l for l in f if json.loads(l)["r"][1] == 0]
            kept += [(key, l) for l in sorted(lines, key=lambda l: kshot.draw(0, l))[:4 * EACH]]
    shutil.rmtree(logs)
    figures.write(out, json.dumps(kept))

def records(work, cpu):
    if cpu in CPUS:
        return list(kshot.records(cpu))
    with open(kshot.once(os.path.join(work, "cpu24.json"), copy_logs)) as f:
        return [tuple(r) for r in json.load(f)]

def tasks(work, cpu):
    if cpu in CPUS:
        folder = kshot.CPUS[cpu]
        return ["--tasks", "examples/%s/%s.tasks.json.xz" % (folder, folder)]
    data = os.path.join(os.environ["CDMPP_DATA"], "tvm-ansor-bench")
    return ["--tasks", kshot.once(os.path.join(work, "cpu24.pkl"), lambda o: threads24.tasks_of(data, False, o)), "--tasks", os.path.join(data, "networks.json")]

def devices(work):
    def make(out):
        with open(os.path.join(figures.ROOT, "configs/devices.yaml")) as f:
            figures.write(out, f.read() + "\n" + threads24.DESCRIBED)
    return os.path.abspath(kshot.once(os.path.join(work, "devices.yaml"), make))

def put_lines(folder, cpu, lines):
    os.makedirs(os.path.join(folder, cpu), exist_ok=True)
    figures.write(os.path.join(folder, cpu, "records.json"), "".join(lines))

def write_logs(work, at, seed):
    for c in ALL:
        many = c == MANY
        parts = [(part_of(k), k, l) for k, l in records(work, c)]
        put_lines(at("train-" + c), c, kshot.sample([(k, l) for p, k, l in parts if p == "train"], seed, EACH if many else kshot.OF_TASK, 10 ** 9 if many else ONE))
        put_lines(at("asked-" + c), c, kshot.sample([(k, l) for p, k, l in parts if p == PART], 0, TEST_24 if many else kshot.OF_TEST, ONE))

# ---- models ----
class Seed:
    """What one seed has made: data sets, models, answers."""
    def __init__(self, work, seed):
        self.work, self.seed = work, seed
        self.at = lambda *names: os.path.join(work, "%s-%d" % (PART, seed), *names)
        os.makedirs(self.at(), exist_ok=True)
        kshot.once(self.at("logs"), lambda out: (write_logs(work, self.at, seed), figures.write(out, "done\n")))

    def extract(self, cpu, name, source):
        return kshot.once(self.at(name), lambda out: quick.sh(B + "/cdmpp-extract", "-q", "-j", JOBS, *tasks(self.work, cpu), "--out", out, source))

    def data(self, cpu):
        return self.extract(cpu, cpu + ".h5", self.at("train-" + cpu))

    def few(self, cpu, k):
        """A folder of k programs of the CPU that were chosen, and their data set."""
        def make(out):
            os.makedirs(os.path.join(out, cpu), exist_ok=True)
            kshot.choose(os.path.join(out, cpu, "records.json"), self.data(cpu), k, self.seed)
        folder = kshot.once(self.at("few-%s-%d" % (cpu, k)), make)
        return folder, self.extract(cpu, "few-%s-%d.h5" % (cpu, k), folder)

    def train(self, name, files, *more):
        def make(out):
            settings = ("data.files=[%s]" % ",".join(files), "split.seed=%d" % self.seed, "train.seed=%d" % self.seed, "split.kind=task", "split.test=0.02",
                        "filter.facts=true", "train.facts=prior", "device.file=" + devices(self.work)) + more
            quick.sh(B + "/cdmpp-train", "configs/own.yaml", "--quiet", "--json", "-j", JOBS, "--out", out, *[w for s in settings for w in ("--set", s)])
        return kshot.once(self.at(name + ".cdmpp"), make)

    def joint(self, cpus, extra=(), many=False):
        """A model of all records of some CPUs; its settings are those of configs/default.yaml. many: more trees that see all columns."""
        name = "-".join(("long" if many else "of",) + cpus + tuple(n for n, _ in extra))
        rounds = ("train.rounds=300", "train.colsample=1") if many else ("train.rounds=120",)
        return self.train(name, [self.data(c) for c in cpus] + [f for _, f in extra], "split.valid=0.1", "model.folds=2", "train.eta=0.2", *rounds)

    def new(self, cpu, arm, k):
        """The model that answers for a new CPU."""
        if arm == "a":
            return self.train("alone-%s-%d" % (cpu, k), [self.few(cpu, k)[1]])
        others = tuple(c for c in {"b": CPUS, "c": (MANY,), "d": ALL}[arm] if c != cpu)
        if k == 0:
            return self.joint(others)
        folder, few = self.few(cpu, k)
        if HOW == "beside":
            return self.joint(others, (("%s-%d" % (cpu, k), few),))
        base = self.joint(others)
        return kshot.once(self.at("calibrated-%s-%s-%d.cdmpp" % (cpu, arm, k)), lambda out: quick.sh(
            B + "/cdmpp-tune", "calibrate", "-q", "--json", "--force", "--records", folder, *tasks(self.work, cpu), "--cost-model", base,
            "--devices", devices(self.work), "--out", out))

    def ask(self, cpu, model, *more):
        def run(out):
            figures.write(out, quick.sh(B + "/cdmpp-predict", "--cost-model", model, "-j", JOBS, *tasks(self.work, cpu), "--devices", devices(self.work), "--device", cpu, *more,
                                        "--quiet", "--json", "--eval", self.at("asked-" + cpu)))
        with open(kshot.once(self.at("answer-%s-%s.json" % (cpu, os.path.basename(model))), run)) as f:
            e = json.load(f)["evaluation"]
        return {"n": e["n"], "mape": 100 * e["mape"], "median": 100 * e["median_ape"], "log": e["mae_log"], "spearman": e["spearman"]}

    def answer(self, cpu, arm, k):
        return self.ask(cpu, self.new(cpu, arm, k), *(["--nearest"] if k == 0 else []))

# ---- tables ----
WHAT = ("mape", "median", "log", "spearman")
MADE_OF = {"a": "none", "b": "one thread", "c": "24 threads", "d": "one thread and 24"}

def mean_of(runs):
    """Of the seeds; the spread of MAPE beside them."""
    return dict({w: figures.mean(r[w] for r in runs) for w in WHAT}, n=runs[0]["n"], each=[r["mape"] for r in runs])

def cells(v):
    return "%d | %.1f +- %.1f | %.1f | %.3f | %.3f" % (v["n"], figures.mean(v["each"]), figures.deviation(v["each"]), v["median"], v["log"], v["spearman"])

HEAD = "| %s | n | MAPE | median | MAE(log) | Spearman |\n| %s | ---: | ---: | ---: | ---: | ---: |"

def write_table(path, columns, rows):
    figures.write(path, "\n".join([HEAD % (" | ".join(columns), " | ".join(["---"] * len(columns)))] + ["| %s | %s |" % (" | ".join(names), cells(v)) for names, v in rows]) + "\n")

def asked(cpus, arms):
    """(CPU, arm, k) in the order of the table."""
    return [(c, arm, k) for c in cpus for k in (0,) + SHOTS for arm in arms if k or arm != "a"]

def many_and_one(seeds):
    """Of each CPU (what trained, figures): its own records alone, all of one thread, all."""
    out = []
    for c in ALL:
        sets = [("its own", (c,))] + ([("one thread", CPUS)] if c in CPUS else []) + [("one thread and 24", ALL)]
        out += [(c, name, mean_of([s.ask(c, s.joint(of, many=True)) for s in seeds])) for name, of in sets]
    return out

def tell(found, both, seeds):
    """Words for figures.py put: with 100 programs, by CPU and the mean; what one model costs, as a ratio."""
    put_figure = lambda name, value, unit, n: print("figure:%s=%s,%s,%d,%d" % (name, value, unit, n, seeds))
    for k in (0,) + SHOTS:
        for arm in "abcd":
            if (CPUS[0], arm, k) in found:
                put_figure("mean-%s-%d" % (arm, k), "%.1f" % figures.mean(found[c, arm, k]["mape"] for c in CPUS), "%", sum(found[c, arm, k]["n"] for c in CPUS))
                put_figure("mean-log-%s-%d" % (arm, k), "%.3f" % figures.mean(found[c, arm, k]["log"] for c in CPUS), "", sum(found[c, arm, k]["n"] for c in CPUS))
    for c in CPUS:
        best = min(found[c, arm, 100]["mape"] for arm in "cd")
        put_figure("over-%s" % c, "%.3f" % (best / min(found[c, arm, 100]["mape"] for arm in "ab")), "", found[c, "d", 100]["n"])
    mean = {arm: figures.mean(found[c, arm, 100]["mape"] for c in CPUS) for arm in "abcd"}
    n = sum(found[c, "d", 100]["n"] for c in CPUS)
    put_figure("over", "%.3f" % (min(mean["c"], mean["d"]) / min(mean["a"], mean["b"])), "", n)
    put_figure("back", "%.3f" % (found[MANY, "b", 100]["mape"] / found[MANY, "a", 100]["mape"]), "", found[MANY, "b", 100]["n"])
    least = {c: min(v["mape"] for x, name, v in both if x == c and name != "one thread and 24") for c in ALL}
    joint = {x: v for x, name, v in both if name == "one thread and 24"}
    for c in ALL:
        put_figure("joint-%s" % c, "%.3f" % (joint[c]["mape"] / least[c]), "", joint[c]["n"])

def main(work, table, back, one_model):
    os.makedirs(work, exist_ok=True)
    seeds = [Seed(work, int(s)) for s in os.environ.get("SEEDS", "1,2,3").split(",")]
    found = {}
    for c, arm, k in asked(CPUS, "abcd") + asked((MANY,), "ab"):
        found[c, arm, k] = mean_of([s.answer(c, arm, k) for s in seeds])
        print("results: transfer24, %s, %s, %d: MAPE %.1f, MAE(log) %.3f" % (c, arm, k, found[c, arm, k]["mape"], found[c, arm, k]["log"]), file=sys.stderr)
    both = many_and_one(seeds)
    row = lambda c, arm, k: ((c, "%d" % k, MADE_OF[arm]), found[c, arm, k])
    write_table(table, ("new CPU", "of it measured", "other records"), [row(*q) for q in asked(CPUS, "abcd")])
    write_table(back, ("new CPU", "of it measured", "other records"), [row(*q) for q in asked((MANY,), "ab")])
    write_table(one_model, ("CPU", "trained on"), [((c, name), v) for c, name, v in both])
    tell(found, both, len(seeds))
    return 0

if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) == 5 else __doc__)
