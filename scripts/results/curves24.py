#!/usr/bin/env python3
"""curves24.py WORK [all] -- how errors fall with data: models of the CPU with 24 threads (scripts/results/threads24.py) by number of training programs and of training tasks; prints words
for figures.py put, writes Markdown tables to WORK.

Judged are the tasks of JUDGED in both layouts that no held-out network of threads24 has; the tasks of the held-out networks are not read at all. A tenth of the other tasks, with
VALID programs of a log each, validates all trainings alike; of the rest train
    programs   PER_TASK programs of every task
    tasks      TOTAL programs in all, of so many tasks; those of fewer tasks are among those of more
With `all` the other logs of these searches train as well (EVERY; what is judged and what validates stays), by number of programs, of the first draw alone.
Of one draw the programs, the tasks and the seeds of the models are others. A training that takes more memory than MEMORY is an error. A step that is done is not done again. From
the environment: B, JOBS, DRAWS (default 1,2,3) and MODELS, names with ; between (default: all)."""
import functools, json, math, os, re, subprocess, sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import figures, quick, threads24, threads24_score as score

B, JOBS = os.environ.get("B", "build/release"), os.environ.get("JOBS", "1")
DRAWS = [int(d) for d in os.environ.get("DRAWS", "1,2,3").split(",")]
JUDGED, VALID, TEST = ("mobilenet_v3", "wide_resnet_50", "vgg_16"), 30, 150 # programs of a log, drawn by the place of a line
PER_TASK, TASKS, TOTAL = (3, 30, 300, 0), (10, 30, 100, 300, 0), 5000 # 0: all
EVERY, OF_ALL = r"^(old-ansor/search_space_1000|search_space_task_1000)/", (300, 3000, 0)
MEMORY, STEPS, EPOCHS, BATCH = 2048, 2000, 10, 256
ALIKE = ("model.folds=1", "predict.point=median", "filter.facts=true", "filter.max_per_task=0", "data.devices=[]", "train.memory=%d" % MEMORY)
# name: configuration, settings
MODELS = {
    "trees": ("own", ("model.members=[rows]", "train.facts=prior", "train.max_bin=256", "train.max_depth=8", "train.lambda=3", "train.rounds=200", "train.eta=0.1",
              "train.early_stop=40", "device.file=")),
    "mlp": ("baseline-mlp", ("net.device=false", "train.facts=none")),
}
NAMES = {"trees": "trees: rows, facts, prior", "mlp": "small network: mlp"}
COLUMNS = ("mape", "median", "spearman", "top1", "top5", "top10")

# ---- data ----
@functools.lru_cache(None)
def judged_keys():
    nets = threads24.networks()
    return {t["workload_key"] for n in nets if n.rsplit("-", 1)[0] in JUDGED for t in nets[n]}

def validates(key):
    return score.draw("curves24 validates", key) % 10 == 0

def thin(path, name):
    key = threads24.key_of(name)
    if key in judged_keys() or validates(key):
        if "original-results-01" not in path.split(os.sep): # of a log that is read with `all` alone
            return os.remove(path)
    each = TEST if key in judged_keys() else VALID if validates(key) else None
    with open(path) as f:
        lines = f.readlines()
    kept = sorted(sorted(range(len(lines)), key=lambda i: score.draw(name, i))[:each])
    figures.write(path, "".join(lines[i] for i in kept))

def copy_logs(data, out):
    """As threads24 does, with these parts; and what it holds out is away."""
    threads24.thin = thin
    threads24.copy_logs(data, out)
    held = threads24.held_out()
    for top in (out, out + ".google"):
        for d, _, files in os.walk(top):
            for name in files:
                if name.endswith("].json") and threads24.key_of(name) in held:
                    os.remove(os.path.join(d, name))

def data_set(work):
    def make(out):
        threads24.once(os.path.join(work, "logs"), lambda o: copy_logs(os.path.join(os.environ["CDMPP_DATA"], "tvm-ansor-bench"), o))
        threads24.data_set(work, out)
    return threads24.once(os.path.join(work, "data.h5"), make)

# ---- trainings ----
def measured(argv):
    """Processor seconds, MB and words of one program that runs."""
    p = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=figures.ROOT)
    told = p.stdout.read()
    _, status, use = os.wait4(p.pid, 0)
    p.returncode = os.waitstatus_to_exitcode(status)
    if p.returncode not in (0, 3):
        raise SystemExit("curves24: %s: status %d: %s" % (" ".join(argv), p.returncode, told))
    return use.ru_utime + use.ru_stime, use.ru_maxrss / 1024, told

def seen(told):
    """Share of the training programs that trees had room for, in %."""
    m = re.search(r"trees of a draw of ([\d.]+) % of the programs", told)
    return float(m[1]) if m else 100.0

def counts(path):
    """Programs and tasks of each part of a report."""
    n, keys = {}, {}
    for r in score.rows(path):
        n[r["part"]] = n.get(r["part"], 0) + 1
        keys.setdefault(r["part"], set()).add(r["task"])
    return n, keys

def train(work, name, config, words):
    """Figures of one training; `words` beside what is alike."""
    stem = os.path.join(work, name)
    def make(out):
        argv = [B + "/cdmpp-train", "--quiet", "-j", JOBS, "--out", stem + ".cdmpp", "--report", stem + ".html", config]
        seconds, mb, told = measured(argv + [w for s in ALIKE + ("data.files=" + os.path.join(work, "data.h5"),) + words for w in ("--set", s)])
        if mb > MEMORY:
            raise SystemExit("curves24: %s took %d MB, allowed are %d" % (name, mb, MEMORY))
        nets = {n: t for n, t in threads24.networks().items() if n.rsplit("-", 1)[0] in JUDGED}
        n, keys = counts(stem + ".csv")
        f = {k: v for k, v in score.judge(stem + ".csv", nets).items() if k in ("mape", "median", "spearman", "pairwise", "top")}
        for k, name_ in enumerate(("top1", "top5", "top10")):
            f[name_] = score.mean([t[k] for t in f["top"].values()])
        f.update(seconds=seconds, mb=mb, seen=seen(told), n=n, keys={p: sorted(k) for p, k in keys.items()})
        figures.write(out, json.dumps(f))
        for end in (".csv", ".html", ".json", ".cdmpp"):
            if os.path.exists(stem + end):
                os.remove(stem + end)
    with open(threads24.once(stem + ".figures", make)) as f:
        return json.load(f)

def known_tasks(work):
    """Tasks with programs that can be read, by part: of a training of one tree."""
    nets = threads24.networks()
    path = os.path.join(work, "known.yaml")
    figures.write(path, "base: %s\nsplit: {kind: network, test_names: %s}\n" % (config_of("baseline-xgb"), json.dumps([n for n in nets if n.rsplit("-", 1)[0] in JUDGED])))
    f = train(work, "known", path, ("train.rounds=1", "split.train_per_task=3", "split.valid=0.1"))
    others = sorted(set(f["keys"]["train"]) | set(f["keys"]["validation"]))
    return f["keys"]["test"], [k for k in others if validates(k)], [k for k in others if not validates(k)]

def config_of(name):
    return os.path.abspath(os.path.join(figures.ROOT, "configs", name + ".yaml"))

def point(work, known, model, arm, size, draw):
    """One training: PER_TASK programs of each task, or TOTAL of `size` tasks."""
    test, valid, rest = known
    tasks = sorted(rest, key=lambda k: score.draw("curves24", draw, k))[:size or len(rest)] if arm == "tasks" else rest
    each = math.ceil(TOTAL / len(tasks)) if arm == "tasks" else size
    name = "%s-%s-%d-%d" % (arm, model, size, draw)
    path = os.path.join(work, name + ".yaml")
    config, more = MODELS[model]
    figures.write(path, "base: %s\nsplit: {kind: task, test_names: %s, valid_names: %s, train_names: %s}\n" % tuple([config_of(config)] + [json.dumps(v) for v in (test, valid, tasks)]))
    words = tuple(m + threads24.described(work) if m.endswith("=") else m for m in more)
    if model == "mlp": # small sets need as many steps, not as few passes
        n = each * len(tasks) if each else 1000 * len(tasks)
        words += ("fit.epochs=%d" % max(EPOCHS, math.ceil(STEPS * BATCH / n)), "fit.eval_every=200", "fit.seed=%d" % draw)
    return train(work, name, path, words + ("split.train_per_task=%d" % each, "split.seed=%d" % draw, "train.seed=%d" % draw))

SIZES = {"programs": PER_TASK, "tasks": TASKS, "all": OF_ALL}

def points(work, known, model, arm):
    """Of each size the figures of its draws."""
    for size in SIZES[arm]:
        yield [point(work, known, model, arm, size, d) for d in (DRAWS[:1] if arm == "all" else DRAWS)]

# ---- tables ----
HEAD = ("| model | programs | tasks | draws | MAPE % | median % | Spearman | top-1 | top-5 | top-10 | MAPE +- | Spearman +- | seen % | processor s | MB |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")

def half(v):
    return (max(v) - min(v)) / 2

def line(model, runs):
    of = lambda k: [r[k] for r in runs]
    spread = ("%.1f" % half(of("mape")), "%.3f" % half(of("spearman"))) if len(runs) > 1 else ("-", "-")
    return "| %s | %d | %d | %d | %.1f | %.1f | %s | %s | %.1f | %.0f | %.0f |\n" % (
        NAMES[model], round(score.mean([r["n"]["train"] for r in runs])), round(score.mean([len(r["keys"]["train"]) for r in runs])), len(runs), score.mean(of("mape")),
        score.mean(of("median")), " | ".join("%.3f" % score.mean(of(k)) for k in COLUMNS[2:]), " | ".join(spread), score.mean(of("seen")), score.mean(of("seconds")), max(of("mb")))

def main(work, *every):
    os.makedirs(work, exist_ok=True)
    if every:
        threads24.LOGS = EVERY
    data_set(work)
    known = known_tasks(work)
    any_ = None
    for arm in every or ("programs", "tasks"):
        with open(os.path.join(work, arm + ".md.tmp"), "w") as f:
            f.write(HEAD)
            for model in (m for m in MODELS if m in os.environ.get("MODELS", ";".join(MODELS)).split(";")):
                for runs in points(work, known, model, arm):
                    any_ = runs[0]
                    f.write(line(model, runs))
        os.replace(os.path.join(work, arm + ".md.tmp"), os.path.join(work, arm + ".md"))
    print("figure:n=%d figure:tasks=%d figure:valid=%d figure:valid-tasks=%d figure:total=%d" % (any_["n"]["test"], len(any_["keys"]["test"]), any_["n"]["validation"],
          len(any_["keys"]["validation"]), TOTAL))

if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) == 2 or sys.argv[2:] == ["all"] else __doc__)
