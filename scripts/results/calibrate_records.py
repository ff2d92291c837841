#!/usr/bin/env python3
"""calibrate_records.py WORK [TABLE] -- intervals after `cdmpp-tune calibrate --records`: each device of examples/ as the new one, three devices as its stand-in.

The model is trained on the three other devices (zen5-avx2 and zen5-avx512 are one core: where either is new neither trains). 20 or 100 programs of the new
device, drawn at random from the tasks that nobody tests on, calibrate it, each device of the model as the stand-in. Asked are
    other tasks   programs of test tasks, which no calibration may draw from (parts of tasks: kshot.py)
    same tasks    programs that were not used, of the tasks that were
A draw is of a seed; the models are the same for all. "told" is the coverage of the interval of 90 % that the command prints, the mean over the draws; +- is the deviation of
one draw from another. Prints words for figures.py put; writes a Markdown table to TABLE. A step that is done is not done again. From the environment: B, JOBS, SEEDS
(default 1,2,3,4,5), MOST (records of a device that train, 1500), ASKED (records that are asked about, 400), PART: test, or valid for choices (kshot.py)."""
import json, math, os, random, sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
os.environ.setdefault("PART", "test")
import figures, kshot, quick

kshot.CPUS = {"zen4": "zen4", "granite-rapids": "granite", "zen5-cdmpp": "turin", "zen5-avx512": "zen5", "zen5-avx2": "zen5"}
kshot.TASKS = [w for f in sorted(set(kshot.CPUS.values())) for w in ("--tasks", "examples/%s/%s.tasks.json.xz" % (f, f))]
B, JOBS, PART = kshot.B, kshot.JOBS, kshot.PART
TRAIN = ("zen4", "granite-rapids", "zen5-cdmpp", "zen5-avx512")
MOST, ASKED = int(os.environ.get("MOST", "1500")), int(os.environ.get("ASKED", "400"))
SHOTS = (20, 100)

def others(new):
    """The devices that a model for it is trained on."""
    return [d for d in TRAIN if d != new and not (new.startswith("zen5-avx") and d.startswith("zen5-avx"))]

def write_logs(work, device):
    """train/DEVICE; pool/DEVICE and asked-PART/DEVICE: what calibrations draw from, and other tasks."""
    all_ = [(kshot.part_of(k), k, l) for k, l in kshot.records(device)]
    rest = [(k, l) for p, k, l in all_ if p == "train"]
    for folder, lines in (("train", kshot.sample(rest, 1, kshot.OF_TASK, MOST)), ("pool", [l for _, l in sorted(rest)]),
                          ("asked-" + PART, kshot.sample([(k, l) for p, k, l in all_ if p == PART], 0, kshot.OF_TEST, ASKED))):
        os.makedirs(os.path.join(work, folder, device), exist_ok=True)
        figures.write(os.path.join(work, folder, device, "records.json"), "".join(lines))

def train(work, devices, out):
    settings = ("data.files=[%s]" % ",".join(os.path.abspath(os.path.join(work, d + ".h5")) for d in devices), "device.file=" + os.path.abspath("configs/devices.yaml"))
    quick.sh(B + "/cdmpp-train", "configs/default.yaml", "--quiet", "-j", JOBS, "--out", out, *[w for s in settings for w in ("--set", s)])

def draw(work, new, k, seed, out):
    """k programs of the pool calibrate; of their tasks the others are asked about."""
    with open(os.path.join(work, "pool", new, "records.json")) as f:
        lines = f.readlines()
    lines.sort(key=lambda l: kshot.draw("draw", seed, l))
    keys = {json.loads(l)["i"][0][0] for l in lines[:k]}
    figures.write(out + ".rest", "".join([l for l in lines[k:] if json.loads(l)["i"][0][0] in keys][:ASKED]))
    figures.write(out, "".join(lines[:k]))

def calibrate(model, few, stands, out):
    told = quick.sh(B + "/cdmpp-tune", "calibrate", "-q", "--json", "--force", "--records", few, *kshot.TASKS, "--cost-model", model, "--device", stands, "--out", out)
    figures.write(out + ".json", told)

def ask(model, device, source, out):
    figures.write(out, quick.sh(B + "/cdmpp-predict", "--cost-model", model, "-j", JOBS, *kshot.TASKS, "--device", device, "--quiet", "--eval", source))

def read(path):
    """n, n with an interval, MAPE, share inside."""
    rows = [json.loads(l) for l in open(path)]
    rows = [r for r in rows if r.get("measured_s")]
    ranged = [r for r in rows if r.get("low_s") is not None]
    inside = sum(r["low_s"] <= r["measured_s"] <= r["high_s"] for r in ranged)
    return {"n": len(rows), "ranged": len(ranged), "mape": 100 * figures.mean(abs(r["latency_s"] / r["measured_s"] - 1) for r in rows) if rows else math.nan,
            "inside": 100 * inside / len(ranged) if ranged else math.nan}

def one(work, new, stands, k, seed):
    at = lambda name: os.path.join(work, name)
    base = kshot.once(at("without-%s.cdmpp" % "+".join(others(new))), lambda out: train(work, others(new), out))
    few = kshot.once(at("few-%s-%d-%d" % (new, k, seed)), lambda out: draw(work, new, k, seed, out))
    rest = few + ".tmp.rest"
    name = "%s-as-%s-%d-%d" % (new, stands, k, seed)
    model = kshot.once(at(name + ".cdmpp"), lambda out: calibrate(base, few, stands, out))
    told = json.load(open(model + ".tmp.json"))
    told = told.get("result", told)
    found = {"told": 100 * told["after"]["inside_interval"], "before": 100 * told["before"]["mape"], "told_mape": 100 * told["after"]["mape"]}
    found["other"] = read(kshot.once(at(name + "-%s.json" % PART), lambda out: ask(model, new, at("asked-%s/%s" % (PART, new)), out)))
    found["same"] = read(kshot.once(at(name + "-same.json"), lambda out: ask(model, new, rest, out)))
    alone = read(kshot.once(at("%s-as-%s-alone-%s.json" % (new, stands, PART)), lambda out: ask(base, stands, at("asked-%s/%s" % (PART, new)), out)))
    found["before"] = alone["mape"]
    print("results: calibrate_records, %s, %s: told %.0f, other tasks %.1f (n %d, %d without), same tasks %.1f (n %d), MAPE %.1f to %.1f" % (
        PART, name, found["told"], found["other"]["inside"], found["other"]["ranged"], found["other"]["n"] - found["other"]["ranged"], found["same"]["inside"], found["same"]["ranged"], found["before"],
        found["other"]["mape"]), file=sys.stderr)
    return found

def cell(values):
    v = [x for x in values if not math.isnan(x)]
    return "%.1f +- %.1f" % (figures.mean(v), figures.deviation(v)) if len(v) > 1 else "%.1f" % v[0] if v else "-"

def main(work, table):
    seeds = [int(s) for s in os.environ.get("SEEDS", "1,2,3,4,5").split(",")]
    news = os.environ.get("NEW", ",".join(kshot.CPUS)).split(",")
    os.makedirs(work, exist_ok=True)
    for d in kshot.CPUS:
        kshot.once(os.path.join(work, "logs-%s-%s" % (PART, d)), lambda out: (write_logs(work, d), figures.write(out, "done\n")))
    for d in TRAIN:
        kshot.once(os.path.join(work, d + ".h5"), lambda out: kshot.extract(out, os.path.join(work, "train", d)))
    rows = ["| new | stand-in | programs | n | MAPE alone | MAPE | told, % | other tasks, % | same tasks, % (n) |", "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"]
    means, n = {}, 0
    for new in news:
        for stands in others(new):
            for k in SHOTS:
                runs = [one(work, new, stands, k, s) for s in seeds]
                other = [r["other"]["inside"] for r in runs]
                means[new, stands, k] = figures.mean(other)
                n += runs[0]["other"]["ranged"]
                rows.append("| %s | %s | %d | %d | %.1f | %s | %s | %s | %s (%d) |" % (
                    new, stands, k, runs[0]["other"]["n"], figures.mean(r["before"] for r in runs), cell([r["other"]["mape"] for r in runs]), cell([r["told"] for r in runs]), cell(other),
                    cell([r["same"]["inside"] for r in runs]), sum(r["same"]["ranged"] for r in runs)))
    if table:
        figures.write(table, "\n".join(rows) + "\n")
    for k in SHOTS:
        v = [m for (_, _, shots), m in means.items() if shots == k]
        print("figure:least-%d=%.1f,%%,%d,%d" % (k, min(v), n, len(seeds)))
        print("figure:mean-%d=%.1f,%%,%d,%d" % (k, figures.mean(v), n, len(seeds)))
        print("figure:most-%d=%.1f,%%,%d,%d" % (k, max(v), n, len(seeds)))
    return 0

if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None) if len(sys.argv) in (2, 3) else __doc__)
