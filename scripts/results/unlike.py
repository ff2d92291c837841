#!/usr/bin/env python3
"""unlike.py WORK [TABLE] -- intervals of programs that are new to a model in one way: that way is left out of the training of a model, and asked about.

    operator kind, intrinsic, range of features
                    tasks of examples/zen4, granite and turin are dealt into four folds by what they compute (the hash of their workload key): each fold is left out once. Its
                    programs are counted by the reason that the answer gives; what is not unlike is a row, too
    instructions    programs of zen5-avx2 by a model that knows that core with AVX-512, and the other way round
    device          zen4, granite-rapids and zen5-cdmpp, each by a model of the two others (cdmpp-predict --nearest)
    threads         no records of several numbers of threads are carried: a model of one thread is asked about programs of four, and must give no interval
Prints words for figures.py put; writes a Markdown table to TABLE. A step that is done is not done again. From the environment: B, JOBS, MOST (records of a device that
train, 1000), ASKED (records of a device that are asked about, 300), FOLDS (those that are run, 0,1,2,3), and PART: valid or test of tasks for instructions and devices (kshot.py)."""
import json, math, os, sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
os.environ.setdefault("PART", "test")
import figures, kshot, quick

kshot.CPUS = {"zen4": "zen4", "granite-rapids": "granite", "zen5-cdmpp": "turin", "zen5-avx512": "zen5", "zen5-avx2": "zen5"}
kshot.TASKS = [w for f in sorted(set(kshot.CPUS.values())) for w in ("--tasks", "examples/%s/%s.tasks.json.xz" % (f, f))]
B, JOBS, PART = kshot.B, kshot.JOBS, kshot.PART
MOST, ASKED = int(os.environ.get("MOST", "1000")), int(os.environ.get("ASKED", "300"))
THREE = ("zen4", "granite-rapids", "zen5-cdmpp")
FOLDS = [int(f) for f in os.environ.get("FOLDS", "0,1,2,3").split(",")]

def train(work, devices, out):
    settings = ("data.files=[%s]" % ",".join(os.path.abspath(d) for d in devices), "device.file=" + os.path.abspath("configs/devices.yaml"))
    quick.sh(B + "/cdmpp-train", "configs/default.yaml", "--quiet", "-j", JOBS, "--out", out, *[w for s in settings for w in ("--set", s)])

def ask(model, source, out, *more):
    figures.write(out, quick.sh(B + "/cdmpp-predict", "--cost-model", model, "-j", JOBS, *kshot.TASKS, *more, "--quiet", "--eval", source))

def fold_of(key):
    return kshot.draw("computes", json.loads(key)[0]) % 4

def put(work, folder, device, lines):
    os.makedirs(os.path.join(work, folder, device), exist_ok=True)
    figures.write(os.path.join(work, folder, device, "records.json"), "".join(lines))

def rows_of(path):
    return [r for r in map(json.loads, open(path)) if r.get("measured_s")]

class Table:
    def __init__(self):
        self.rows, self.figure = ["| new | by whom | n | without an interval | inside, % | times (median) |", "| --- | --- | ---: | ---: | ---: | ---: |"], {}
    def add(self, name, what, by, rows):
        ranged = [r for r in rows if r.get("low_s") is not None]
        inside = 100 * sum(r["low_s"] <= r["measured_s"] <= r["high_s"] for r in ranged) / len(ranged) if ranged else math.nan
        half = sorted(math.sqrt(r["high_s"] / r["low_s"]) for r in ranged)
        self.rows.append("| %s | %s | %d | %d | %s | %s |" % (what, by, len(rows), len(rows) - len(ranged), "%.1f" % inside if ranged else "-", "%.1f" % half[len(half) // 2] if half else "-"))
        print("results: unlike, %s, %s" % (PART, self.rows[-1]), file=sys.stderr)
        self.figure[name] = (inside, len(rows), len(ranged))

REASONS = (("operator", "operator kind"), ("intrinsic", "intrinsic"), ("range", "range of features"))

def folds(work, table):
    """Of several reasons the first of the list counts."""
    found = []
    for f in FOLDS:
        for d in THREE:
            kshot.once(os.path.join(work, "fold%d-%s" % (f, d)), lambda out: (write_fold(work, f, d), figures.write(out, "done\n")))
        data = kshot.once(os.path.join(work, "fold%d.h5" % f), lambda out: kshot.extract(out, os.path.join(work, "fold%d" % f)))
        model = kshot.once(os.path.join(work, "fold%d.cdmpp" % f), lambda out: train(work, [data], out))
        found += rows_of(kshot.once(os.path.join(work, "fold%d.json" % f), lambda out: ask(model, os.path.join(work, "asked-fold%d" % f), out)))
    left = found
    for name, word in REASONS:
        mine = [r for r in left if word in (r.get("reason") or "")]
        left = [r for r in left if word not in (r.get("reason") or "")]
        table.add(name, word, "four folds of what tasks compute", mine)
    table.add("like", "nothing but the task", "the same", [r for r in left if not r.get("out_of_range")])

def write_fold(work, f, device):
    all_ = list(kshot.records(device))
    put(work, "fold%d" % f, device, kshot.sample([(k, l) for k, l in all_ if fold_of(k) != f], 1, kshot.OF_TASK, MOST))
    put(work, "asked-fold%d" % f, device, kshot.sample([(k, l) for k, l in all_ if fold_of(k) == f], 0, kshot.OF_TEST, ASKED))

def write_parts(work, device):
    all_ = [(kshot.part_of(k), k, l) for k, l in kshot.records(device)]
    put(work, "train", device, kshot.sample([(k, l) for p, k, l in all_ if p == "train"], 1, kshot.OF_TASK, MOST))
    put(work, "asked-" + PART, device, kshot.sample([(k, l) for p, k, l in all_ if p == PART], 0, kshot.OF_TEST, ASKED))

def others(work, table):
    for d in kshot.CPUS:
        kshot.once(os.path.join(work, "parts-%s-%s" % (PART, d)), lambda out: (write_parts(work, d), figures.write(out, "done\n")))
        kshot.once(os.path.join(work, d + ".h5"), lambda out: kshot.extract(out, os.path.join(work, "train", d)))
    model_of = lambda devices: kshot.once(os.path.join(work, "+".join(devices) + ".cdmpp"), lambda out: train(work, [os.path.join(work, d + ".h5") for d in devices], out))
    answers = lambda model, new, *more: rows_of(kshot.once(os.path.join(work, "%s-%s-by-%s.json" % (PART, new, os.path.basename(model))), lambda out: ask(model, os.path.join(work, "asked-" + PART, new), out, *more)))
    found = []
    for new, twin in (("zen5-avx2", "zen5-avx512"), ("zen5-avx512", "zen5-avx2")):
        rows = answers(model_of(THREE + (twin,)), new, "--device", twin)
        found += [r for r in rows if "target feature" in (r.get("reason") or "")]
    table.add("instructions", "target feature", "the same core with other instructions", found)
    found = []
    for new in THREE:
        found += answers(model_of(tuple(d for d in THREE if d != new)), new, "--device", new, "--nearest")
    table.add("device", "device", "the nearest of two others", found)
    path = os.path.join(work, "threads", "zen4", "records.json")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    lines = [json.loads(l) for l in open(os.path.join(work, "asked-" + PART, "zen4", "records.json"))][:50]
    for r in lines:
        r["i"][0][1] = r["i"][0][1].replace("-num-cores=1", "-num-cores=4")
        r["i"][0][2][0] = 4
    figures.write(path, "".join(json.dumps(r) + "\n" for r in lines))
    model = model_of(THREE + ("zen5-avx512",))
    table.add("threads", "threads", "a model of one thread", rows_of(kshot.once(os.path.join(work, PART + "-threads.json"), lambda out: ask(model, os.path.join(work, "threads"), out, "--device", "zen4"))))

def main(work, to):
    os.makedirs(work, exist_ok=True)
    table = Table()
    folds(work, table)
    others(work, table)
    if to:
        figures.write(to, "\n".join(table.rows) + "\n")
    for name, (inside, n, ranged) in table.figure.items():
        if ranged:
            print("figure:inside-%s=%.1f,%%,%d" % (name, inside, ranged))
        else:
            print("figure:none-%s=%d,,%d" % (name, ranged, n))
    return 0

if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None) if len(sys.argv) in (2, 3) else __doc__)
