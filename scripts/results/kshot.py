#!/usr/bin/env python3
"""kshot.py WORK [TABLE] -- a CPU of which few programs were measured: leave-one-device-out over the CPUs that examples/ has records of.

One CPU is new, the others train. A fifth of all tasks, drawn by their keys alone, are the test: nobody trains on them, and no program is chosen
from them. From the other tasks come the records of the others and a pool of the new CPU's. Answers for its test programs:
    sheet     nothing is known but the data sheet (device.features: sheet)
    records   a descriptor from its records of programs or tasks that the others have run, too (device.features: both); so the next ones
    k = 3, 10, 200   that many of the pool, chosen by cdmpp-train --choose, correct the model (cdmpp-predict --measured)
    trained   the 200 train beside the others' records
Prints words for figures.py put; writes a Markdown table to TABLE. A step that is done is not done again. From the environment: B, JOBS, SEEDS
(default 1,2,3), MOST (records of a device, default 3000), EPOCHS, ROUNDS, and PART: test, or valid for choices (a fifth of the pool's tasks in the place of
the test; the test is not read)."""
import glob, hashlib, json, lzma, os, sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import figures, quick

CPUS = {"zen4": "zen4", "granite-rapids": "granite", "zen5-cdmpp": "turin"} # device and folder of examples: programs of one code generator and compiler
ARMS = ("sheet", "records", "k3", "k10", "k200", "trained")
NAMES = ("data sheet", "records", "k = 3", "k = 10", "k = 200", "trained on 200")
SHOTS = (3, 10, 200)
B, JOBS, PART = os.environ.get("B", "build/release"), os.environ.get("JOBS", "1"), os.environ.get("PART", "test")
MOST, EPOCHS, ROUNDS = int(os.environ.get("MOST", "3000")), os.environ.get("EPOCHS", "12"), os.environ.get("ROUNDS", "300")
OF_TASK, OF_TEST, FIFTH = 20, 10, 5 # records of a task that train, that test
TASKS = [w for f in sorted(set(CPUS.values())) for w in ("--tasks", "examples/%s/%s.tasks.json.xz" % (f, f))]

def draw(*words):
    return int(hashlib.sha256("|".join(map(str, words)).encode()).hexdigest()[:12], 16)

def part_of(key):
    """The same for all seeds: a test task is one for ever. A fifth of the others may stand for them while something is chosen."""
    if draw("test", key) % FIFTH == 0:
        return "test"
    return "valid" if PART == "valid" and draw("valid", key) % FIFTH == 0 else "train"

def records(cpu):
    """(key, line) of all that were measured."""
    for path in sorted(glob.glob(os.path.join(figures.ROOT, "examples/%s/measure_records/%s/*.xz" % (CPUS[cpu], cpu)))):
        with lzma.open(path, "rt") as f:
            for line in f:
                r = json.loads(line)
                if r["r"][1] == 0:
                    yield r["i"][0][0], line

def sample(lines, seed, each, most):
    """At most `each` of a task and `most` in all; the first of every task before the second of any."""
    count, out = {}, []
    for number, key, line in sorted((draw(seed, l), k, l) for k, l in lines):
        n = count[key] = count.get(key, -1) + 1
        if n < each:
            out.append((n, number, line))
    return [l for _, _, l in sorted(out)[:most]]

def write_logs(work, cpu, seed):
    all_ = {c: [(part_of(k), k, l) for k, l in records(c)] for c in CPUS}
    shared = set.intersection(*({k for p, k, l in all_[c] if p == "train"} for c in CPUS))
    for c in CPUS:
        where = {"others" if c != cpu else "pool": sample([(k, l) for p, k, l in all_[c] if p == "train"], seed, OF_TASK, MOST),
                 "shared": [l for p, k, l in all_[c] if k in shared]}
        if c == cpu:
            where["asked"] = sample([(k, l) for p, k, l in all_[c] if p == PART], 0, OF_TEST, MOST)
        for folder, lines in where.items():
            os.makedirs(os.path.join(work, folder, c), exist_ok=True)
            figures.write(os.path.join(work, folder, c, "records.json"), "".join(lines))

def once(path, make):
    if not os.path.exists(path):
        make(path + ".tmp")
        os.replace(path + ".tmp", path)
    return path

def extract(out, source):
    quick.sh(B + "/cdmpp-extract", "-q", "-j", JOBS, *TASKS, "--out", out, source)

def train(out, files, seed, *more):
    settings = ("data.files=[%s]" % ",".join(files), "split.seed=%d" % seed, "train.seed=%d" % seed, "fit.seed=%d" % seed, "split.valid=0.15",
                "model.members=[rows,program,transformer]", "fit.epochs=" + EPOCHS, "train.rounds=" + ROUNDS, *more)
    quick.sh(B + "/cdmpp-train", "configs/own.yaml", "--quiet", "--json", "-j", JOBS, "--out", out, *[w for s in settings for w in ("--set", s)])

def choose(out, pool, k, seed):
    quick.sh(B + "/cdmpp-train", "configs/own.yaml", "--quiet", "-j", JOBS, "--set", "data.files=" + pool, "--set", "split.kind=task", "--set", "split.valid=0.01",
             "--set", "split.test=0.01", "--set", "data.seed=%d" % seed, "--choose", str(k), "--out", out)

def ask(work, cpu, model, measured=None):
    def run(out):
        figures.write(out, quick.sh(B + "/cdmpp-predict", "--cost-model", model, "-j", JOBS, *TASKS, "--device", cpu, *(["--measured", measured] if measured else []),
                                    "--quiet", "--json", "--eval", os.path.join(work, "asked")))
    name = os.path.join(work, "answer-%s-%s.json" % (os.path.basename(model), os.path.basename(measured) if measured else "none"))
    with open(once(name, run)) as f:
        return json.load(f)["evaluation"]

def one(work, cpu, seed):
    """The figures of the arms for one new CPU and seed."""
    at = lambda name: os.path.join(work, name)
    os.makedirs(work, exist_ok=True)
    once(at("logs"), lambda out: (write_logs(work, cpu, seed), figures.write(out, "done\n")))
    others, pool = (once(at(n + ".h5"), lambda out, n=n: extract(out, at(n))) for n in ("others", "pool"))
    devices = once(at("devices.yaml"), lambda out: figures.write(out, quick.sh(B + "/cdmpp-profile", "--describe-device", "--from-records", *TASKS, at("shared"))))
    new = ("split.kind=device", "split.test_names=[%s]" % cpu)
    base = {kind: once(at(kind + ".cdmpp"), lambda out, kind=kind: train(out, (others, pool), seed, *new, "device.file=" + devices, "device.features=" + kind))
            for kind in ("sheet", "both")}
    for k in SHOTS:
        once(at("k%d.json" % k), lambda out, k=k: choose(out, pool, k, seed))
    few = once(at("k200.h5"), lambda out: extract(out, at("k200.json")))
    beside = once(at("trained.cdmpp"), lambda out: train(out, (others, few), seed, "split.kind=task", "split.test=0.01", "device.file=" + devices, "device.features=both"))
    found = [ask(work, cpu, base["sheet"]), ask(work, cpu, base["both"])] + [ask(work, cpu, base["both"], at("k%d.json" % k)) for k in SHOTS] + [ask(work, cpu, beside)]
    print("results: kshot, %s, seed %d, %s: MAPE %s" % (cpu, seed, PART, " ".join("%s %.1f" % (a, 100 * f["mape"]) for a, f in zip(ARMS, found))), file=sys.stderr)
    return dict(zip(ARMS, found))

def main(work, table):
    seeds = [int(s) for s in os.environ.get("SEEDS", "1,2,3").split(",")]
    runs = {c: [one(os.path.join(work, "%s-%s-%d" % (PART, c, s)), c, s) for s in seeds] for c in CPUS}
    rows = ["| new CPU | n | " + " | ".join(NAMES) + " |", "| --- | ---: | " + " | ".join(["---:"] * len(NAMES)) + " |"]
    mean = {c: {a: figures.mean(100 * r[a]["mape"] for r in runs[c]) for a in ARMS} for c in CPUS}
    for c in CPUS:
        cells = ["%.1f +- %.1f" % (mean[c][a], figures.deviation(100 * r[a]["mape"] for r in runs[c])) for a in ARMS]
        rows.append("| %s | %d | %s |" % (c, runs[c][0]["sheet"]["n"], " | ".join(cells)))
    if table:
        figures.write(table, "\n".join(rows) + "\n")
    for c in CPUS:
        print("figure:ratio-%s=%.3f,,%d,%d" % (c, mean[c]["k10"] / min(mean[c]["k200"], mean[c]["trained"]), runs[c][0]["sheet"]["n"], len(seeds)))
    each = {a: figures.mean(mean[c][a] for c in CPUS) for a in ARMS}
    for a in ARMS:
        print("figure:%s=%.1f,%%,%d,%d" % (a, each[a], sum(runs[c][0]["sheet"]["n"] for c in CPUS), len(seeds)))
    print("figure:ratio=%.3f,,%d,%d" % (each["k10"] / min(each["k200"], each["trained"]), sum(runs[c][0]["sheet"]["n"] for c in CPUS), len(seeds)))
    return 0

if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None) if len(sys.argv) in (2, 3) else __doc__)
