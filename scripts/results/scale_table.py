#!/usr/bin/env python3
"""Tables for the stage operators-scale (scale.sh), and the errors of what cdmpp-predict --from --to answers.

    scale_table.py neusight FOLDER PART OUT   OUT/DEVICE.csv: rows of NeuSight's train or test tables, with the launch of each
    scale_table.py records FOLDER OUT         OUT/A-B.A.FOLD.json and .B.: the records whose program was measured on A and on B, of a third of
                                              their tasks; OUT/FOLD.names: these tasks as a YAML list
    scale_table.py spread ANSWERS...          90th percentile of |ln(measured / closed form)| by class and form
    scale_table.py rows KNOWN ANSWERS...      Markdown: errors by class; KNOWN: DEVICE/OPERATOR,... that the model was trained on
    scale_table.py pairs OUT                  Markdown: errors of OUT/A-B.FROM.FOLD.jsonl against the records of the other
"""
import collections, csv, glob, json, math, os, re, sys

CLASS = {"bmm": "bmm", "linear": "linear", "conv": "conv", "softmax": "softmax", "ln": "layernorm"}
ORDER = ["bmm", "linear", "conv", "elementwise", "softmax", "layernorm"]
KEEP = ["OPName", "Latency", "Device", "Grid x", "Grid y", "Grid z", "Block x", "Block y", "Block z", "B", "M", "N", "K", "H", "Input_Channel",
        "Output_Channel", "Kernel_Size", "Input_Size", "Stride", "Padding"]
FOLDS = 3
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

def rows(known, names):
    known = set(known.split(","))
    e = collections.defaultdict(list)
    for j in answers(names):
        kind = CLASS.get(j["operator"], "elementwise")
        where = "trained on" if "%s/%s" % (j["to"], kind) in known else "new"
        h = j.get("low_s") and j["low_s"] <= j["measured_s"] <= j["high_s"]
        for w in (where, "all"):
            for k in (kind, "**all**"):
                e[k, w].append((abs(j["closed_error"]), abs(j["error"]), h, j["closed_form"]))
    print("| class | destination | n | closed forms MAPE % | median % | by the model MAPE % | median % | in interval % |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for k in ORDER + ["**all**"]:
        for w in ("trained on", "new", "all"):
            v = e.get((k, w))
            if v:
                inside = [x[2] for x in v if x[2] is not None]
                print("| %s | %s | %d | %.1f | %.1f | %.1f | %.1f | %s |" % (k, w, len(v), 100 * mean([x[0] for x in v]), 100 * median([x[0] for x in v]),
                      100 * mean([x[1] for x in v]), 100 * median([x[1] for x in v]), "%.1f" % (100 * mean(inside)) if inside else "-"))

def pairs(out):
    """Closed forms and model of each direction; the last row is the mean of the directions."""
    print("| from | to | programs | tasks | closed forms MAPE % | median % | by the model MAPE % | median % | in interval % |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    found, total = collections.defaultdict(list), []
    for name in sorted(glob.glob(out + "/*.jsonl")):
        pair, source, fold = re.match(r"(.*)\.(\w+)\.(\d)\.jsonl", os.path.basename(name)).groups()
        to = [d for d in pair.split("-") if d != source][0]
        truth = [median(json.loads(l)["r"][0]) for l in open("%s/%s.%s.%s.json" % (out, pair, to, fold))]
        for line in open(name):
            j = json.loads(line)
            if "error" not in j:
                t = truth[j["line"] - 1]
                found[source, to].append((abs(j["closed_s"] / t - 1), abs(j["latency_s"] / t - 1), j["low_s"] <= t <= j["high_s"], j["workload_key"]))
    for (source, to), v in sorted(found.items()):
        c, m = [x[0] for x in v], [x[1] for x in v]
        total.append((mean(c), median(c), mean(m), median(m), mean([x[2] for x in v]), len(v)))
        print("| %s | %s | %d | %d | %s |" % (source, to, len(v), len({x[3] for x in v}), " | ".join("%.1f" % (100 * x) for x in total[-1][:5])))
    print("| **mean** | **of all** | %d | - | %s |" % (sum(t[5] for t in total), " | ".join("%.1f" % (100 * mean([t[k] for t in total])) for k in range(5))))

if __name__ == "__main__":
    what, rest = sys.argv[1], sys.argv[2:]
    if what == "spread":
        spread(rest)
    elif what == "rows":
        rows(rest[0], rest[1:])
    else:
        {"neusight": neusight, "records": records, "pairs": pairs}[what](*rest)
