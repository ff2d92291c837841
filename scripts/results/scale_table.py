#!/usr/bin/env python3
"""Tables for the stage operators-scale (scale.sh), and the errors of what cdmpp-predict --from --to answers.

    scale_table.py neusight FOLDER PART OUT   OUT/DEVICE.csv: rows of NeuSight's train or test tables, with the launch of each
    scale_table.py records FOLDER OUT         OUT/A-B.A.FOLD.json and .B.: the records whose program was measured on A and on B, of a third of
                                              their tasks; OUT/FOLD.names: these tasks as a YAML list
    scale_table.py curves TABLE OUT           OUT/DEVICE.csv: operators of op_curves.tsv at a few sizes
    scale_table.py batches TABLE OUT          OUT/train.csv, OUT/test.csv: the same at small batches, hosts of three GPUs and hosts of AWS
    scale_table.py llm FOLDER OUT             OUT/train-DEVICE.csv: bfloat16 products of TensorRT-LLM, half of the matrices as operators_llm.sh
                                              divides them, three GPUs; OUT/DEVICE.csv: the other half by vLLM, four GPUs
    scale_table.py closed ANSWERS...          Markdown: errors of closed forms by pair of GPUs
    scale_table.py spread ANSWERS...          90th percentile of |ln(measured / closed form)| by class and form
    scale_table.py rows KNOWN ANSWERS...      Markdown: errors by class; KNOWN: DEVICE/OPERATOR,... that the model was trained on
    scale_table.py probe FOLDER TASKS DEVICES devices.yaml with the bandwidth that the fastest record of one task reached on each GPU
    scale_table.py pairs OUT TASKS            Markdown: errors of OUT/A-B.FROM.FOLD.jsonl against the records of the other
"""
import ast, collections, csv, glob, json, lzma, math, os, re, sys

CLASS = {"bmm": "bmm", "linear": "linear", "conv": "conv", "softmax": "softmax", "ln": "layernorm"}
ORDER = ["bmm", "linear", "conv", "elementwise", "softmax", "layernorm"]
KEEP = ["OPName", "Latency", "Device", "Grid x", "Grid y", "Grid z", "Block x", "Block y", "Block z", "B", "M", "N", "K", "H", "Input_Channel",
        "Output_Channel", "Kernel_Size", "Input_Size", "Stride", "Padding"]
FOLDS = 3
PROBE = "relu_layer", 128, 64, 112, 112 # the largest task that all three GPUs have records of; no pair of it is evaluated
CARRIED = "learner/operators/library_op_scale.h", r"#define CD_LIBRARY_OP_SCALE_CARRIED ([\d.]+)" # where the exponent stands
LAUNCH_MS = 0.05  # no launch takes longer: a table of large rows alone has none that is a launch

def files(folder, part):
    if part == "train":
        return sorted(glob.glob(folder + "/dataset*/train/collect/*/*/*.csv"))
    return [folder + "/dataset/test/%s.csv" % k for k in ("bmm", "linear", "elem", "softmax", "ln")] + \
        sorted(glob.glob(folder + "/dataset_amd/test/collect/*/*/*.csv"))

def neusight(folder, part, out):
    rows, fastest = collections.defaultdict(list), {}
    for name in files(folder, part):
        with open(name, newline="") as f:
            for r in csv.DictReader(f):
                r["Kernel_Size"] = r.get("Kernel_Size") or r.get("Kernel_Szie")
                rows[r["Device"]].append(r)
                key = r["OPName"], r["Device"]
                fastest[key] = min(fastest.get(key, LAUNCH_MS), float(r["Latency"]))
    for device, table in rows.items():
        with open("%s/%s.csv" % (out, re.sub(r"\W+", "-", device)), "w", newline="") as f:
            w = csv.writer(f)
            w.writerow(KEEP + ["launch_ms"])
            for r in table:
                w.writerow([r.get(k) or "" for k in KEEP] + ["%.9g" % min(float(r["Latency"]), fastest[r["OPName"], device])])

HOST = {"dell04": "rtx2080ti", "dell01": "t4", "dellh01": "k40", "g3.4xlarge": "m60", "g4dn.4xlarge": "t4", "p2.8xlarge": "k80", "p3.2xlarge": "v100"}

def curve_rows(name):
    """Elementwise operators of equal shapes: host, n, row. Nobody wrote down the stride of the convolutions, and the dense layers of two hosts differ."""
    for c in csv.DictReader(lzma.open(name, "rt"), delimiter="\t"):
        shapes = ast.literal_eval(c["shape"])
        op = {"nn.relu": "relu", "add": "add", "multiply": "mul", "tanh": "tanh"}.get(c["operator"])
        if not op or any(s != shapes[0] for s in shapes):
            continue
        for n, ms in (p.split(":") for p in c[[k for k in c if k.startswith("points")][0]].split()):
            yield c["host"], n, [op, ms, HOST[c["host"]], int(n) * math.prod(shapes[0][1:-1]), shapes[0][-1]]

def curves(name, out):
    rows = collections.defaultdict(list)
    for host, n, row in curve_rows(name):
        if n in SIZES:
            rows[host].append(row)
    for host, table in rows.items():
        write("%s/%s.csv" % (out, host), CURVE_HEAD, table)

def batches(name, out):
    """The first point of a curve may hold a warm-up: none is of batch 1. No batch is one of SIZES."""
    rows = {"train": [], "test": []}
    for host, n, row in curve_rows(name):
        if n in (("2", "3", "4", "6", "8", "12", "16", "24") if host.startswith("dell") else ("4", "8", "16")):
            rows["train" if host.startswith("dell") else "test"].append(row)
    for part, table in rows.items():
        write("%s/%s.csv" % (out, part), CURVE_HEAD, table)

CURVE_HEAD = ["OPName", "Latency", "Device", "B", "H"]
SIZES = ("25", "50", "100", "32", "64", "128") # of the two sets of curves
GPUS = {"a100_sxm": "a100-sxm4-80gb", "h100_sxm": "h100", "l40s": "l40s", "rtx_pro_6000_server": "rtx-pro-6000-server"}

def llm(folder, out):
    for gpu, device in GPUS.items():
        half = {"train": [], "test": []}
        for r in csv.DictReader(lzma.open("%s/%s/gemm.tsv.xz" % (folder, gpu), "rt"), delimiter="\t"):
            stack = "train" if r["stack"].startswith("trtllm") else "test" if r["stack"].startswith("vllm") else None
            part = "train" if (int(r["n"]) * 7919 + int(r["k"]) * 104729) // 1000 % 2 == 0 else "test"
            if r["gemm_dtype"] == "bfloat16" and stack == part:
                half[part].append(["linear", "%.9g" % (1000 * float(r["latency_s"])), device, "bfloat16", r["m"], r["k"], r["n"]])
        head = ["OPName", "Latency", "Device", "dtype", "M", "N", "K"]
        write("%s/%s.csv" % (out, device), head, half["test"])
        if gpu != "rtx_pro_6000_server":
            write("%s/train-%s.csv" % (out, device), head, half["train"])

def write(name, head, table):
    with open(name, "w", newline="") as f:
        csv.writer(f).writerows([head] + table)

def records(folder, out):
    """Of programs that were measured more than once on a GPU the fastest record."""
    best = {}
    for device in ("k80", "mi50", "v100"):
        best[device] = {}
        for name in sorted(glob.glob("%s/%s/*" % (folder, device))):
            for line in open(name):
                j = json.loads(line) if line.strip() else None
                if not j or j["r"][1] != 0:
                    continue
                key, t = (j["i"][0][0], json.dumps(j["i"][1][1])), median(j["r"][0])
                if key not in best[device] or t < best[device][key][0]:
                    best[device][key] = t, line.rstrip("\n")
    both = {(a, b): sorted(set(best[a]) & set(best[b])) for a in best for b in best if a < b}
    tasks = sorted({k[0] for v in both.values() for k in v})
    for fold in range(FOLDS):
        with open("%s/%d.names" % (out, fold), "w") as f:
            f.write("[%s]" % ", ".join("'%s'" % t for t in tasks[fold::FOLDS]))
        for pair, keys in both.items():
            for d in pair:
                with open("%s/%s-%s.%s.%d.json" % (out, *pair, d, fold), "w") as f:
                    f.writelines(best[d][k][1] + "\n" for k in keys if k[0] in tasks[fold::FOLDS])

def key_of_probe(tasks):
    return [t["workload_key"] for t in json.load(open(tasks + "/tasks.json")) if t["layer"] == json.dumps(list(PROBE))][0]

def probe(folder, tasks, devices):
    key, text = key_of_probe(tasks), open(devices).read()
    for device in ("k80", "mi50", "v100"):
        best = 1e9
        for name in glob.glob("%s/%s/*" % (folder, device)):
            for line in open(name):
                j = json.loads(line) if line.strip() else None
                if j and j["r"][1] == 0 and j["i"][0][0] == key:
                    best = min(best, median(j["r"][0]))
        text = re.sub(r"(\n- name: %s\n(?:  .*\n)*?  bandwidth_gb_s: )[\d.]+" % device, lambda m: "%s%.1f" % (m[1], 8 * math.prod(PROBE[1:]) / best / 1e9), text)
    sys.stdout.write(text)

def median(v):
    return sorted(v)[len(v) // 2]

def mean(v):
    return sum(v) / len(v)

def answers(names):
    for name in names:
        with open(name) as f:
            for line in f:
                j = json.loads(line)
                if j.get("measured_s"):
                    yield j

def percentile(v, q):
    return sorted(v)[min(len(v) - 1, int(q * len(v)))]

def spread(names):
    far = collections.defaultdict(list)
    for j in answers(names):
        far[CLASS.get(j["operator"], "elementwise"), j["closed_form"]].append(abs(math.log(j["measured_s"] / j["closed_s"])))
    for k in sorted(far):
        print(*k, len(far[k]), "%.3f" % percentile(far[k], 0.9))

def closed(names):
    """Answers without a model; by pair and class."""
    e = collections.defaultdict(list)
    for j in answers(names):
        if j["from"] == j["to"]:
            continue # two hosts with the same GPU
        e[j["from"], j["to"], CLASS.get(j["operator"], "elementwise")].append((abs(j["error"]), j["low_s"] <= j["measured_s"] <= j["high_s"]))
    print("| from | to | class | n | closed forms MAPE % | median % | in interval % |")
    print("| --- | --- | --- | ---: | ---: | ---: | ---: |")
    for k, v in sorted(e.items()):
        print("| %s | %s | %s | %d | %.1f | %.1f | %.1f |" % (*k, len(v), 100 * mean([x[0] for x in v]), 100 * median([x[0] for x in v]), 100 * mean([x[1] for x in v])))

def rows(known, names):
    known, power = set(known.split(",")), float(re.search(CARRIED[1], open(CARRIED[0]).read())[1])
    e = collections.defaultdict(list)
    for j in answers(names):
        kind = CLASS.get(j["operator"], "elementwise")
        where = "trained on" if "%s/%s" % (j["to"], kind) in known else "new"
        h = j.get("low_s") and j["low_s"] <= j["measured_s"] <= j["high_s"]
        carried = power if "%s/%s" % (j["from"], kind) in known else 0
        alone = j["latency_s"] * (j["predicted_from_s"] / j["from_s"]) ** carried
        for w in (where, "all"):
            for k in (kind, "**all**"):
                e[k, w].append((abs(j["closed_error"]), abs(j["error"]), h, abs(alone / j["measured_s"] - 1)))
    print("| class | destination | n | closed forms MAPE % | median % | model without the measured time MAPE % | by the model MAPE % | median % | in interval % |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for k in ORDER + ["**all**"]:
        for w in ("trained on", "new", "all"):
            v = e.get((k, w))
            if v:
                inside = [x[2] for x in v if x[2] is not None]
                print("| %s | %s | %d | %.1f | %.1f | %.1f | %.1f | %.1f | %s |" % (k, w, len(v), 100 * mean([x[0] for x in v]), 100 * median([x[0] for x in v]),
                      100 * mean([x[3] for x in v]), 100 * mean([x[1] for x in v]), 100 * median([x[1] for x in v]), "%.1f" % (100 * mean(inside)) if inside else "-"))

def pairs(out, tasks):
    """Each direction; the last row is the mean of the directions. Beside an answer, .probe, are the closed forms by measured bandwidths."""
    print("| from | to | programs | tasks | closed forms MAPE % | median % | by measured bandwidths MAPE % | median % | by the model MAPE % | median % | in interval % |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    found, total, skip = collections.defaultdict(list), [], key_of_probe(tasks)
    for name in sorted(glob.glob(out + "/*.jsonl")):
        pair, source, fold = re.match(r"(.*)\.(\w+)\.(\d)\.jsonl", os.path.basename(name)).groups()
        to = [d for d in pair.split("-") if d != source][0]
        truth = [median(json.loads(l)["r"][0]) for l in open("%s/%s.%s.%s.json" % (out, pair, to, fold))]
        for line, other in zip(open(name), open(name + ".probe")):
            j = json.loads(line)
            if "error" not in j and j["workload_key"] != skip:
                t = truth[j["line"] - 1]
                found[source, to].append((abs(j["closed_s"] / t - 1), abs(json.loads(other)["closed_s"] / t - 1), abs(j["latency_s"] / t - 1),
                                          j["low_s"] <= t <= j["high_s"], j["workload_key"]))
    for (source, to), v in sorted(found.items()):
        total.append([f([x[k] for x in v]) for k in range(3) for f in (mean, median)] + [mean([x[3] for x in v]), len(v)])
        print("| %s | %s | %d | %d | %s |" % (source, to, len(v), len({x[4] for x in v}), " | ".join("%.1f" % (100 * x) for x in total[-1][:7])))
    print("| **mean** | **of all** | %d | - | %s |" % (sum(t[7] for t in total), " | ".join("%.1f" % (100 * mean([t[k] for t in total])) for k in range(7))))

if __name__ == "__main__":
    what, rest = sys.argv[1], sys.argv[2:]
    if what == "spread":
        spread(rest)
    elif what == "closed":
        closed(rest)
    elif what == "rows":
        rows(rest[0], rest[1:])
    else:
        {"neusight": neusight, "records": records, "pairs": pairs, "curves": curves, "batches": batches, "llm": llm, "probe": probe}[what](*rest)
