#!/usr/bin/env python3
"""Static batches of language models, served by SGLang on eleven GPUs: 40 measured configurations of PipeWeave's artefact (zksainx/pipeweave, `e2e`), answered by cdmpp-replay --llm --load.

    batches.py list GIT                       each configuration as a line: name, part, GPU, tp, requests, tokens of all prompts
    batches.py load GIT NAME OUT.csv          its requests, for --load; their lengths are those of `workload`
    batches.py config GIT NAME OUT.json       config.json of its model, as the artefact has it
    batches.py table GIT W [PART]             errors of the answers W/NAME.json as Markdown tables W/main.md, W/each.md, and words for figures.py put

GIT is the git directory of a clone. A configuration was measured five times: its time is the median. The whole batch is one prefill, then each step gives a token to every
sequence. PART chosen was looked at while the answers were made better; `test` was not: these are other GPUs (PARTS). PipeWeave's, NeuSight's and Habitat's answers of
the same configurations come with the artefact."""
import json, os, re, subprocess, sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import figures

CHOSEN = ("H800", "L20", "RTX_A6000") # one for each of three architectures; the other GPUs are the test
GPUS = {"A100": "a100_sxm", "A40": "a40", "H100": "h100", "H20": "h20", "H200": "h200", "H800": "h800", "L20": "l20", "L40": "l40", "RTX_6000_Ada": "rtx6000-ada",
        "RTX_A6000": "a6000", "RTX_PRO_6000_S": "rtx_pro_6000_server"}
OTHERS = (("PipeWeave", "pipeweave_pred", ""), ("NeuSight", "neusight_pred", ""), ("Habitat", "habitat_pred", ""), ("linear in the GPU's rates", "linear_pred", "_linear"))
NAME = re.compile(r"(?P<model>[^_]+)_(?P<work>[a-z]+_\d+)_(?P<fa>fa\d)_tp(?P<tp>\d)_pp1_(?P<gpu>\w+)\.json")
WHAT = (("total", "total_duration_ms", "total_latency", "duration_s"), ("prefill", "prefill_duration_ms", "prefill_latency", "ttft_s"), ("decode step", "decode_avg_duration_ms", "median_decode_latency", "tpot_s"))

def median(v):
    v = sorted(v)
    return (v[(len(v) - 1) // 2] + v[len(v) // 2]) / 2

def show(git, path):
    return subprocess.run(["git", "--git-dir=" + git, "show", "HEAD:" + path], check=True, stdout=subprocess.PIPE, text=True).stdout

def names(git):
    """Configurations with an answer of PipeWeave, in order."""
    out = subprocess.run(["git", "--git-dir=" + git, "ls-tree", "--name-only", "HEAD", "e2e/pipeweave_pred/"], check=True, stdout=subprocess.PIPE, text=True).stdout
    return [m for m in map(NAME.fullmatch, (os.path.basename(l) for l in out.split("\n"))) if m and m["gpu"] in GPUS and measured(git, m)]

def part_of(m):
    return "chosen" if m["gpu"] in CHOSEN else "test"

def stem(m):
    return m[0][:-len(".json")]

def measured(git, m):
    """The runs of a configuration."""
    path = "e2e/real/e2e_%s%s.jsonl" % ("" if m["tp"] == "1" else "tp%s_" % m["tp"], m["gpu"])
    try:
        rows = [json.loads(l) for l in show(git, path).split("\n") if l.strip()]
    except subprocess.CalledProcessError:
        return []
    return [r for r in rows if r["run_name"] == "%s-%s" % (m["model"], m["work"])]

def steps(git, m):
    return json.loads(show(git, "workload/%s_%s_%s_tp%s_pp1.json" % (m["model"], m["work"], m["fa"], m["tp"])))["iterations"]

def lengths(git, m):
    """Tokens of the prompts; tokens that each sequence gets."""
    s = steps(git, m)
    if s[0]["phase"] != "prefill" or any(x["phase"] != "decode" for x in s[1:]):
        raise SystemExit("batches: %s: expected one prefill, then steps that decode" % m[0])
    run = measured(git, m)[0]
    if len(s[0]["q_lengths"]) != run["batch_size"] or sum(s[0]["q_lengths"]) != run["total_prefill_tokens"]:
        raise SystemExit("batches: %s: the lengths are not those of the measured run" % m[0])
    return s[0]["q_lengths"], run["output_len"]

def find(git, name):
    return next(m for m in names(git) if stem(m) == name)

def write_list(git):
    for m in names(git):
        prompts, _ = lengths(git, m)
        print(stem(m), part_of(m), GPUS[m["gpu"]], m["tp"], len(prompts), sum(prompts))

def write_load(git, name, out):
    prompts, tokens = lengths(git, find(git, name))
    figures.write(out, "isl,osl\n" + "".join("%d,%d\n" % (p, tokens) for p in prompts))

def write_config(git, name, out):
    figures.write(out, show(git, "config/%s.json" % find(git, name)["model"]))

# ---- errors ----
def truth(git, m, key):
    return median([r[key] for r in measured(git, m)])

def ours(work, m):
    """Seconds of WHAT; None where it was refused."""
    with open(os.path.join(work, stem(m) + ".json")) as f:
        text = f.read()
    if not text:
        return None
    run = json.loads(text)["result"]["answers"][0]
    return None if "refused" in run else run

def theirs(git, m, folder, suffix):
    try:
        return json.loads(show(git, "e2e/%s/%s%s.json" % (folder, stem(m), suffix)))["summary"]
    except subprocess.CalledProcessError:
        return None

def errors(git, work, list_, k):
    """By method: |predicted / measured - 1| in % of each configuration."""
    what, summary, real, key = WHAT[k]
    found = {"cdmpp": []}
    for m in list_:
        y, o = truth(git, m, real), ours(work, m)
        if o:
            found["cdmpp"].append(100 * abs(o[key] / y - 1))
        for name, folder, suffix in OTHERS:
            t = theirs(git, m, folder, suffix)
            if t:
                found.setdefault(name, []).append(100 * abs(t[summary] / 1e3 / y - 1))
    return found

def row(part, what, name, e):
    e = sorted(e)
    return "| %s | %s | %s | %d | %.1f | %.1f | %.1f | %.1f |" % (part, what, name, len(e), figures.mean(e), median(e), e[int(0.9 * (len(e) - 1))], e[-1])

def inside(work, list_, git):
    """Configurations whose measured prefill and step lie in the interval, in %."""
    hit = n = 0
    for m in list_:
        o = ours(work, m)
        for real, low, high in (("prefill_latency", "ttft_low_s", "ttft_high_s"), ("median_decode_latency", "tpot_low_s", "tpot_high_s")):
            if o and o[low] is not None:
                n += 1
                hit += o[low] <= truth(git, m, real) <= o[high]
    return 100.0 * hit / n if n else float("nan"), n

def each_row(git, work, m):
    o = ours(work, m)
    cells = ["-" if not o else "%+.1f" % (100 * (o[key] / truth(git, m, real) - 1)) for _, _, real, key in WHAT]
    return "| %s | %s | %s | %s | %s | %.2f | %s |" % (m["gpu"].replace("_", " "), m["model"], m["work"].replace("_", " "), m["tp"], part_of(m), truth(git, m, "total_latency"), " | ".join(cells))

def write_tables(git, work, only=None):
    all_ = [m for m in names(git) if only in (None, part_of(m))]
    parts = [(only, all_)] if only else [("test", [m for m in all_ if part_of(m) == "test"]), ("all", all_)]
    out = ["| part | what | method | n | MAPE % | median % | 90 % better than | worst |", "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |"]
    words = []
    for part, list_ in parts:
        for k, (what, _, _, _) in enumerate(WHAT):
            for name, e in errors(git, work, list_, k).items():
                out.append(row(part, what, name, e))
                if name in ("cdmpp", "PipeWeave"):
                    words.append("figure:%s-%s-%s=%.1f,%%,%d" % (part, what.split()[0], name.lower(), figures.mean(e), len(e)))
        share, n = inside(work, list_, git)
        words.append("figure:%s-inside=%.1f,%%,%d" % (part, share, n))
    figures.write(os.path.join(work, "main.md"), "\n".join(out) + "\n")
    head = "| GPU | model | batch | tp | part | measured s | total % | prefill % | decode step % |\n| --- | --- | --- | ---: | --- | ---: | ---: | ---: | ---: |\n"
    figures.write(os.path.join(work, "each.md"), head + "".join(each_row(git, work, m) + "\n" for m in all_))
    print(" ".join(words))

if __name__ == "__main__":
    todo = {"list": write_list, "load": write_load, "config": write_config, "table": write_tables}.get(sys.argv[1] if len(sys.argv) > 1 else "")
    sys.exit(todo(*sys.argv[2:]) if todo else __doc__)
