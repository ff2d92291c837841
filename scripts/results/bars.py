"""Bars: what was to be reached, written down before it was measured. "met" and "missed" are computed here and nowhere else.

A bar names a figure and a number. Several runs or both ends of a range: the worst counts. A promised bar that is missed makes render.py,
and so `make results` and `make check`, fail; the others are printed as missed. A bar that is met on a test set that was looked at more
than once is "met after N looks": what was changed between the looks may have been chosen by them. From USED_UP looks on it proves nothing."""
import figures

USED_UP = 4

def total(rows, column, weight="n"):
    return sum(r[column] * r[weight] for r in rows)

def weighted(rows, column, weight="n"):
    return total(rows, column, weight) / sum(r[weight] for r in rows)

def measured(value, form="%s", unit=""):
    unit = " " + unit if unit else ""
    if isinstance(value, list) and len(set(value)) > 1:
        low, high = min(value), max(value)
        return "%s to %s%s" % (digits(low, form), digits(high, form), unit)
    return digits(value[0] if isinstance(value, list) else value, form) + unit

def digits(v, form):
    return form % v if form != "%s" else "{:,}".format(v) if isinstance(v, int) and abs(v) > 9999 else str(v)

def holds(value, bar, better):
    values = value if isinstance(value, list) else [value]
    return max(values) <= bar + 1e-9 if better == "less" else min(values) >= bar - 1e-9

class Bars:
    def __init__(self, f, sets):
        self.f, self.sets, self.out, self.numeric = f, sets, [], {}

    def add(self, group, what, goal="", value=None, bar=None, better="less", text=None, form="%s", unit="", n="", test_set=None, promised=False,
        again="", id=""):
        """value and bar: a number each, or lists of pairs (value, bar) in `bar` when there are several parts."""
        parts = bar if isinstance(bar, list) else [(value, bar)] if bar is not None else []
        looks = len(self.sets[test_set]["looks"]) if test_set else ""
        verdict = ""
        if parts:
            verdict = "met" if all(holds(v, b, better) for v, b in parts) else "missed"
            if verdict == "met" and looks and looks > 1:
                verdict = "met after %d looks" % looks if looks < USED_UP else "met, but the set is used up (%d looks)" % looks
        self.out.append({"group": group, "id": id, "what": what, "goal": goal, "measured": text or measured(value, form, unit), "n": digits(n,
            "%s") if n != "" else "",
                         "looks": looks, "verdict": verdict, "promised": promised, "again": again})

    def bench(self, group, what, goal, names, bars=(), better="less", again="", tail="", promised=False, id="", n="", test_set=None):
        now = self.f.stages.get("bench-printed", {"figures": {}})["figures"]
        fig = [now.get(x) or self.f.figure("bench", x) for x in names]
        self.numeric.update((x, (bar, better)) for x, bar in zip(names, bars))
        n = n or max((x.get("n", 0) for x in fig), default=0) or ""
        values = ", ".join(measured(x["value"], "%s", x.get("unit", "")) for x in fig)
        self.add(group, what, goal, text=values + tail, bar=[(x["value"], b) for x, b in zip(fig, bars)] or None, better=better, again=again,
            promised=promised, id=id, n=n, test_set=test_set)

# ---- accuracy on programs ----
def unseen(b):
    """Tasks never seen, the mean of the draws that no look was taken at before: MAPE and median."""
    for s, name, mape, median in (("v100", "V100", 20, 11), ("k80", "K80", 19, 12), ("mi50", "MI50", 21, 14), ("zen5", "Zen 5", 23, 16)):
        rows = b.f.rows("models-fresh", set=s) if "models-fresh" in b.f.stages else []
        if rows:
            ours = [sum(r[c] for r in rows) / len(rows) for c in ("MAPE", "median")]
            b.add("programs", "tasks never seen, mean of %d draws, %s: MAPE, median" % (len(rows), name), "%d %%, %d %%" % (mape, median),
                bar=[(ours[0], mape), (ours[1], median)], text="%.1f %%, %.1f %%" % tuple(ours), n=sum(r["n"] for r in rows), test_set="fresh-draws-2",
                again="`fresh`")

def coverage(b):
    """Intervals of 90 %: shares inside are to lie in a range, neither end is better."""
    f = b.f
    near = lambda v, low, high: abs(v - (low + high) / 2)
    if "models-calibrate-records" in f.stages:
        for k in (20, 100):
            ends = [f.figure("models-calibrate-records", "%s-%d" % (e, k)) for e in ("least", "most")]
            far = max(near(r["value"], 85, 95) for r in ends)
            b.add("programs", "in the interval of 90 %% after calibration by %d programs, other tasks: least and most of 15 pairs of a new device and its stand-in" % k, "85 to 95 %", far, 5,
                  text="%.1f to %.1f %%" % tuple(r["value"] for r in ends), n=ends[0]["n"], test_set="calibrate-records", again="`calibrate_records`", id="calibrate-inside-%d" % k)
    for name, what in (("operator", "a new operator kind"), ("intrinsic", "a new intrinsic"), ("range", "out of the range of features"), ("instructions", "new instructions"), ("device", "a new device")):
        r = f.stages.get("models-unlike", {}).get("figures", {}).get("inside-" + name)
        if r:
            b.add("programs", "in the interval of 90 %: programs with " + what, "85 to 97 %", near(r["value"], 85, 97), 6, text="%.1f %%" % r["value"], n=r["n"], test_set="unlike-programs",
                  again="`unlike`", id="unlike-" + name)

def programs(b):
    f = b.f
    def pair(stage, what, kind, promised, test_set, **where):
        ours, theirs = f.cell(stage, "MAPE", model="cdmpp", **where), f.cell(stage, "MAPE", model="XGBoost", **where)
        fair = [r["MAPE"] for r in f.rows("models-tilted", split=where["split"], set=where["set"])] if "models-tilted" in f.stages else []
        theirs, kind = (fair[0], "XGBoost, same kind of answer") if fair else (theirs, "XGBoost, median")
        b.add("programs", what, "0.7 times XGBoost", ours, 0.7 * theirs, text="%.1f %% (%s: %.1f %%)" % (ours, kind, theirs), n=f.cell(stage, "n",
            model="cdmpp", **where),
              test_set=test_set, promised=promised, again="`models` of `make results`", id="%s-%s" % (where["set"], where["split"].replace(" ", "-")))
    for s, name, t in (("v100", "V100", "tasks-gpu"), ("k80", "K80", "tasks-gpu"), ("mi50", "MI50", "tasks-gpu"), ("zen5", "Zen 5", "tasks-zen5")):
        pair("models-task", "tasks never seen, " + name, "task", False, t, set=s, split="task")
    for s, net, name in (("v100", "nasnet_large", "NASNet, V100"), ("zen5", "mobilenet_v3", "MobileNet v3, Zen 5"), ("zen5", "resnet_18",
        "ResNet-18, Zen 5"),
                         ("zen5", "inception_v3", "Inception v3, Zen 5"), ("zen5", "bert_medium", "BERT medium, Zen 5")):
        pair("models-network", "programs of a network never seen: " + name, "network", False, "networks-of-programs", set=s, split="without " + net)
    for s, name, bar in (("v100", "V100", 12), ("k80", "K80", 9)):
        ours, published = f.cell("models-protocol", "MAPE", set=s, model="cdmpp"), f.figure("published", "cdmpp-" + s)["value"]
        b.add("programs", "CDMPP's own protocol, %s (CDMPP: %.2f %%, on its programs)" % (name, published), "%d %%" % bar, ours, bar, form="%.1f",
            unit="%",
              n=f.cell("models-protocol", "n", set=s, model="cdmpp"), test_set="interleaved", promised=True, again="`models`", id=s + "-protocol")

    unseen(b)
    if "models-left-out" in f.stages:
        left_out(b)
    if "models-kshot" in f.stages:
        r = f.figure("models-kshot", "ratio")
        b.add("programs", "a new CPU: error with 10 of its programs over that with 200", "1.2", r["value"], 1.2, form="%.2f", n=r["n"], test_set="cpu-kshot-2", again="`kshot`",
              id="new-cpu")
    if "models-calibrated" in f.stages:
        for arm, what, bar in (("none", "a new CPU and new tasks, nothing measured", 30), ("100", "the same, calibrated by 100 programs", 22)):
            r = f.figure("models-calibrated", "mape-" + arm)
            b.add("programs", what + ", MAPE", "%d %%" % bar, r["value"], bar, form="%.1f", unit="%", n=r["n"], test_set="cpu-kshot-2", again="`calibrated`", id="new-cpu-" + arm)
    coverage(b)
    if "models-transfer24" in f.stages:
        transfer24(b)
    if "models-threads24" in f.stages:
        for id, what, goal, bar, better, form, unit in (
                ("top1", "top-1 of networks held out, mean of the six", "0.95", 0.95, "more", "%.3f", ""), ("top5", "their top-5", "0.99", 0.99, "more", "%.3f", ""),
                ("spearman", "Spearman inside their tasks", "0.9", 0.9, "more", "%.3f", ""), ("mape", "MAPE of their programs", "15 %", 15, "less", "%.1f", "%"),
                ("median", "median error of their programs", "8 %", 8, "less", "%.1f", "%"), ("hashes-top1", "top-1, hashes held out, too", "0.9", 0.9, "more", "%.3f", ""),
                ("trials", "trials to within 5 % of the best by score, over those in Ansor's own order, medians", "0.25", 0.25, "less", "%.2f", "")):
            r = f.figure("models-threads24", id)
            b.add("programs", "a CPU with 24 threads: " + what, goal, r["value"], bar, better, form=form, unit=unit, n=r["n"], test_set="threads24", again="`threads24`, by hand", id="threads24-" + id)

def transfer24(b):
    """Records of 24 threads are worth something to a CPU of one thread where its error is below that of its 100 programs alone, and that of these beside the CPUs of one thread."""
    for id, what in (("over", "mean of three CPUs"), ("over-zen4", "Zen 4"), ("over-granite-rapids", "Granite Rapids"), ("over-zen5-cdmpp", "Zen 5")):
        r = b.f.figure("models-transfer24", id)
        b.add("programs", "100 programs of a new CPU of one thread, records of 24 threads beside: MAPE over the best without these, " + what, "below 1", r["value"], 0.999, form="%.3f", n=r["n"],
              test_set="transfer24", again="`transfer24`, by hand", id="transfer24-" + id)
    r = [b.f.figure("models-transfer24", "joint-" + c) for c in ("zen4", "granite-rapids", "zen5-cdmpp", "cpu24")]
    b.add("programs", "one model of one thread and of 24: MAPE over the best of separate models, four CPUs", "1.02", [x["value"] for x in r], 1.02, form="%.3f", n=sum(x["n"] for x in r),
          test_set="transfer24", again="`transfer24`, by hand", id="transfer24-joint")

def left_out(b):
    def one(what, goal, name, id, bar=None, **more):
        x = b.f.figure("models-left-out", name)
        more = {"value": x["value"], "bar": bar, "unit": x.get("unit", ""), **more}
        b.add("programs", what, goal, n=x["n"], test_set="networks-zen5", again="`left_out`", id="left-out-" + id, **more)
    def near(name, middle, by, form):
        v = b.f.figure("models-left-out", name)["value"]
        return {"value": None, "bar": [(round(abs(v - middle), 3), by)], "text": form % v}
    one("17 networks of Zen 5, each left out: mean of their MAPE", "28 %", "cdmpp-point-mape", "mape", 28, form="%.1f")
    one("the same, the worst network", "40 %", "cdmpp-worst", "worst", 40, form="%.1f")
    one("the same, abs(ln) over that of tilted XGBoost", "0.6", "ln-ratio", "ln", 0.6, form="%.2f")
    one("the same, inside the interval of 90 %", "88 to 92 %", "cdmpp-point-inside", "inside", **near("cdmpp-point-inside", 90, 2, "%.1f %%"))
    for split, text in (("networks", "networks left out"), ("tasks", "tasks drawn")):
        name = "fastest-%s-cdmpp-corrected" % split
        one("fastest record of an unseen task, predicted over measured, %s: median" % text, "0.95 to 1.05", name, "fastest-" + split, **near(name, 1, 0.05, "%.2f"))
        one("the same, p90 of the ratio or its inverse", "1.4", name + "-p90", "fastest-p90-" + split, 1.4, form="%.2f")

def tuner(b):
    rows = b.f.rows("models-tuner")
    ratio = [round(r["Spearman, tuner"] / r["Spearman"], 2) for r in rows]
    points = [round(100 * (r["top-1, tuner"] - r["top-1"])) for r in rows]
    b.add("tuner", "its Spearman over the whole model's, %d draws" % len(rows), "0.97", ratio, 0.97, "more", form="%.2f", n=len(rows),
        test_set="task-draws", again="`models`")
    b.add("tuner", "its top-1 minus the whole model's, %d draws" % len(rows), "-1 point", points, -1, "more", unit="points", n=len(rows),
        test_set="task-draws", again="`models`")

# ---- accuracy on networks ----
E2E = ("the same, networks whose tasks were not trained on, records of other processors beside", "the same, other processors beside"), \
      ("the same, without those records", "predicted, none of these networks in training")

def networks(b):
    f = b.f
    means, n = f.rows("replay-e2e", "means")[0], sum(r["tasks in the set, by time"] >= 85 for r in f.rows("replay-e2e"))
    def e2e(what, column, id):
        two = means[column]
        b.add("networks", what, "8 % over the means", two[0], 8, text="%.1f %% over the means of their runs, %.1f over the medians" % tuple(two), n=n,
            test_set="e2e-networks", again="`replay`", id=id)
    e2e("TVM's measured networks with at least 85 % of their time in tasks of the set, trained on other records of these networks",
        "predicted, split by record", "e2e-known")
    for (what, column), id in zip(E2E, ("e2e-beside", "e2e-unknown")):
        e2e(what, column, id)
    o, w = f.figure("published", "others-mean"), f.figure("published", "others-worst")
    b.add("networks", "the same recipe on five other networks, measured outside this page's run", "8 %", o["value"], 8,
        text="%s, worst %s" % (measured(o["value"], "%s", "%"), measured(w["value"], "%s", "%")),
          n=o["n"], test_set="e2e-others", again="not in `make results`", id="e2e-others")
    for stage, where, most in (("live", "", 20), ("live-zen5", ", Zen 5", 15)):
        if stage not in f.stages:
            continue
        live, seen = f.rows(stage), "live-networks" + where.lower().replace(", ", "-").replace(" ", "")
        e = [abs(r["estimate, %d" % k]) for r in live for k in (1, 4)]
        b.add("networks", "ten networks on one core here%s, batch 1 and 4, schedules fixed before, none in training: estimate" % where, "mean 8 %%, most %d %%" % most,
              bar=[(figures.mean(e), 8), (max(e), most)], text="%.1f %%, %.1f %%" % (figures.mean(e), max(e)), n=len(e), test_set=seen,
              again="`%s`, by hand" % stage.replace("-", "_"), id=stage)
        e = [abs(r["from times in place, %d" % k]) for r in live for k in (1, 4)]
        b.add("networks", "the same: replay of the operators' times measured in place", "4 %", figures.mean(e), 4, form="%.1f", unit="%", n=len(e),
            test_set=seen, again="`%s`, by hand" % stage.replace("-", "_"), id=stage + "-in-place")
    if "calibrate-networks" in f.stages:
        r, most = f.figure("calibrate-networks", "mean-here"), f.figure("calibrate-networks", "most-here")
        b.add("networks", "ten networks on a machine that no model saw, after five minutes of `cdmpp-tune calibrate`: mean, largest", "10 %", bar=[(r["value"], 10)],
            text="%.1f %%, %.1f %%" % (r["value"], most["value"]), n=r["n"], test_set="calibrate-networks-5", again="`calibrate_networks`, by hand", id="calibrate")
    e = {r["network"]: r["predicted"][1] for r in f.rows("replay-roller")}
    b.add("networks", "Roller's V100 networks, batch 128: " + ", ".join(e), "10 %", bar=[(abs(v), 10) for v in e.values()],
        text=", ".join("%+.1f %%" % v for v in e.values()),
          n=len(e), test_set="roller-networks", again="`replay`", id="roller")

# ---- NeuSight ----
FIVE = ("NVIDIA H100 80GB HBM3", "NVIDIA L4", "NVIDIA A100-PCIE-40GB", "Tesla V100-PCIE-32GB", "Tesla T4")

def neusight(b):
    f = b.f
    means = {r["GPU"]: r for r in f.rows("operators-networks", "means")}
    five = means.pop("**mean of H100, L4, A100, V100, T4**")
    ours, theirs, n = five["ours"], five["NeuSight"], sum(means[g]["n"] for g in FIVE)
    b.add("neusight", "forward passes, mean over H100, L4, A100, V100, T4", "10 %", ours, 10, text="%.1f %% (NeuSight %.1f %%)" % (ours, theirs), n=n,
        test_set="neusight-inference",
          promised=True, again="`operators`", id="neusight-five")
    for g, r in means.items():
        if "no products" not in g: # promised on the GPUs where it held when this was written
            b.add("neusight", "forward passes, %s: below NeuSight's %.1f %%" % (g, r["NeuSight"]), "%.1f %%" % r["NeuSight"], r["ours"],
                r["NeuSight"], form="%.1f", unit="%", n=r["n"],
                  test_set="neusight-inference", promised=not g.endswith(("P100-PCIE-16GB", "P4")), again="`operators`", id=g)
    train = f.rows("operators-training")
    for name, rows in (("NVIDIA's GPUs together", [r for r in train if not r["GPU"].startswith("AMD")]), *((r["GPU"], [r]) for r in train)):
        ours, theirs = weighted(rows, "mean error"), weighted(rows, "NeuSight")
        b.add("training", "iterations of training, %s: below NeuSight's %.1f %%" % (name, theirs), "%.1f %%" % theirs, round(ours, 1), round(theirs,
            1), form="%.1f", unit="%", n=sum(r["n"] for r in rows),
              test_set="neusight-training", again="`operators`", id="training " + name)
    bmm = f.figure("operators-graphs", "bmm-out")
    published = f.cell("operators-graphs", "published", **{"class": "bmm", "distribution": "out"})
    b.add("rows", "bmm out of distribution, totals in networks: not above what NeuSight published", "%.1f %%" % published, bmm["value"], published,
        unit="%", n=bmm["n"], test_set="neusight-inference",
          again="`operators`", id="bmm-out")
    out = [r for r in f.rows("operators-rows", "nvidia", sizes="all") if r["device"] in ("h100 (unseen)", "l4 (unseen)", "a100-80gb (unseen)")]
    for kind, of in (("bmm", 13.8), ("softmax", 13.9), ("linear", 13.9)):
        rows = [r for r in out if r["class"] == kind]
        b.add("rows", "%s by rows on H100, L4 and A100 80GB" % kind, "%.1f %%" % of, round(weighted(rows, "MAPE %"), 1), of, unit="%",
            n=sum(r["n"] for r in rows), test_set="neusight-rows", again="`operators`")
    def inside(what, rows, group="intervals"):
        v = round(weighted(rows, "in interval %"), 1)
        b.add(group, what, "85 to 95 %", bar=[(abs(v - 90), 5)], text="%.1f %%" % v, n=sum(r["n"] for r in rows), test_set="neusight-rows",
            again="`operators`")
    for device, what in (("**trained on**", "GPUs that were trained on"), ("**unseen**", "other GPUs")):
        rows = f.rows("operators-rows", "nvidia", device=device, sizes="all")
        for r in rows:
            inside("%s, %s" % (what, r["class"].strip("*")), [r])
    inside("products of AMD, a vendor of which no product was trained on", f.rows("operators-rows", "amd", device="**unseen**", sizes="all",
        **{"class": "**all**"}))
    for name, what in (("seen", "bfloat16 products by vLLM on the GPUs of the training, matrices never seen"),
                       ("unseen", "bfloat16 products of a GPU that was not trained on")):
        x = f.figure("operators-llm", name)
        b.add("intervals", what, "85 to 95 %", bar=[(abs(x["value"] - 90), 5)], text="%.1f %%" % x["value"], n=x["n"], test_set="llm-products",
            again="`operators_llm`")
    for name, of, what in (("batched", "llm-batched", "batched bfloat16 products, a class that was not trained on"),
                           ("tvm-unseen", "curve-devices", "TVM's elementwise operators on three GPUs that were not trained on"),
                           ("tvm-seen", "curve-devices", "the same on a GPU that was trained on, another host")):
        x = f.figure("operators-other", name)
        b.add("intervals", what, "85 to 95 %", bar=[(abs(x["value"] - 90), 5)], text="%.1f %%" % x["value"], n=x["n"], test_set=of,
            again="`operators_llm`")

    if "serving" in f.stages:
        for name, what, goal, bar in (("tpot-mean", "TPOT of models that nothing was fitted on, mean error (of runs whose conditions are recorded)", "7 %", 7),
                                      ("tpot-p90", "the same, 90 % of the runs are better than", "15 %", 15)):
            x = f.figure("serving", name)
            b.add("serving", what, goal, x["value"], bar, unit="%", n=x["n"], test_set="llm-serving", again="`serving`")
        for name, what in (("tpot-inside", "measured TPOT of these in its interval"), ("ttft-inside", "measured TTFT of these in its interval")):
            x = f.figure("serving", name)
            b.add("serving", what, "85 to 95 %", bar=[(abs(x["value"] - 90), 5)], text="%.1f %%, chosen on these runs" % x["value"], n=x["n"], test_set="llm-serving", again="`serving`")

    if "batches" in f.stages:
        for part, what in (("test", "total time of static batches, eight GPUs, 30 configurations"), ("all", "the same, all eleven GPUs, 40 configurations")):
            x = f.figure("batches", part + "-total-cdmpp")
            b.add("batches", what, "7 %", x["value"], 7, unit="%", n=x["n"], test_set="llm-batches", again="`batches`")
        x = f.figure("batches", "test-inside")
        b.add("batches", "measured prefill and step of these in their intervals", "85 to 95 %", bar=[(abs(x["value"] - 90), 5)], text="%.1f %%" % x["value"], n=x["n"], test_set="llm-batches", again="`batches`")

    if "throughput" in f.stages:
        for name, what in (("mean", "tokens a second of a GPU at full load, five models on five GPUs, mean error"), ("sheet", "the same on B200 and GB200, which are answered from their descriptions alone")):
            x = f.figure("throughput", name)
            b.add("throughput", what, "20 %", x["value"], 20, form="%.1f", unit="%", n=x["n"], test_set="llm-throughput", again="`throughput`")
        x = f.figure("throughput", "inside")
        b.add("throughput", "measured throughput in its interval", "85 to 95 %", bar=[(abs(x["value"] - 90), 5)], text="%.1f %%" % x["value"], n=x["n"], test_set="llm-throughput", again="`throughput`")

    if "fp8" in f.stages:
        for name, what, goal, of in (("all", "fp8 products of four GPUs, of which two were trained on", "2 %", 2), ("twins", "of these the two that were not: of the same chip", "15 %", 15)):
            x = f.figure("fp8", name)
            b.add("fp8", what, goal, x["value"], of, unit="%", n=x["n"], test_set="llm-fp8", again="`fp8`")
        x = f.figure("fp8", "twins-inside")
        b.add("fp8", "their 90 % intervals", "85 to 95 %", bar=[(abs(x["value"] - 90), 5)], text="%.1f %%" % x["value"], n=x["n"], test_set="llm-fp8", again="`fp8`")

    for r in f.rows("llm-operators"):
        of = {"rows": 4, "sites": 8, "fp8 of H20 and H800": 2}.get(r["part"])
        if of:
            b.add("llm-rows", "%s: %s" % (r["part"], r["operator"]), "%d %%" % of, r["MAPE %"], of, form="%.1f", unit="%", n=r["n"], test_set="llm-operators-2", again="`llm_operators`")
    for r in f.rows("llm-operators"):
        if r["part"] == "rows":
            v = r["in interval %"]
            b.add("llm-rows", "rows: %s, 90 %% intervals" % r["operator"], "87 to 93 %", bar=[(abs(v - 90), 3)], text="%.1f %%" % v, n=r["n"], test_set="llm-operators-2", again="`llm_operators`")
    new = {r["operator"]: r for r in f.rows("llm-gpus") if r["part"] == "all four"}
    for kind, of, what in (("gemm", 15, "products"), ("attention_prefill", 15, "prefill"), ("attention_decode", 18, "decode"), ("moe", 20, "experts"),
                           ("all_reduce", 20, "all-reduce")):
        r = new[kind]
        b.add("llm", "%s on a GPU never seen, each of four in turn" % what, "%d %%" % of, r["MAPE %"], of, form="%.1f", unit="%", n=r["n"], test_set="llm-gpus", again="`llm_gpus`")
        v = r["in interval %"]
        b.add("llm", "the same: 90 % intervals".replace("the same", what), "85 to 95 %", bar=[(abs(v - 90), 5)], text="%.1f %%" % v, n=r["n"], test_set="llm-gpus",
            again="`llm_gpus`")
    for name in ("GPU", "library", "kernel", "dtype", "operator"):
        r = f.stages.get("llm-novel", {}).get("figures", {}).get("inside-" + name)
        if r:
            v = r["value"]
            b.add("llm", "in the interval of 90 %%: rows of a new %s" % {"dtype": "type"}.get(name, name), "85 to 97 %", bar=[(abs(v - 91), 6)], text="%.1f %%" % v, n=r["n"],
                  test_set="llm-novel", again="`novel`", id="novel-" + name.lower())
    for name, what in (("closed-pairs", "closed forms, programs of K80, V100 and MI50, mean of the six directions"),
                       ("probed-pairs", "the same by bandwidths that one operator reaches"),
                       ("model-pairs", "the model with the measured time, the same")):
        x = f.figure("operators-scale", name)
        b.add("scale", what, "below the closed forms" if name == "model-pairs" else "15 %", x["value"],
            f.figure("operators-scale", "probed-pairs")["value"] if name == "model-pairs" else 15, unit="%", n=x["n"], test_set="ansor-pairs", again="`scale`")

# ---- speed and the rest: measured by benchmarks (make bench, tests/bench) ----
def speed(b):
    x = b.bench
    x("features", "programs with TVM v0.9's features, CPU", "99.9 % equal", ["features-equal-cpu"], [99.9], "more", "`scripts/compare_tvm.sh`",
        promised=True)
    x("features", "the same on V100, K80 and MI50", "99.9 % equal", ["features-equal-gpu"], [99.9], "more", "`scripts/compare_tvm.sh`", promised=True)
    x("features", "recorded schedules that our space of schedules holds, step by step: CPU, GPU", "", ["space-cpu", "space-gpu"],
        again="`scripts/compare_tvm.sh`")
    x("features", "JSON line to rows, a CPU program", "40 us (TVM: 1,040)", ["features-cpu"], [40], again="`make bench`", id="features-cpu")
    x("features", "the same, a GPU program", "120 us (TVM: 8,500)", ["features-gpu"], [120], again="`make bench`", id="features-gpu")
    x("features", "facts of a CPU program, behind its rows (2026-11-26, busy)", "15 us", ["facts-cpu"], [15], again="`make bench`", id="facts-cpu")
    x("features", "the same, a GPU program", "30 us", ["facts-gpu"], [30], again="`make bench`", id="facts-gpu")
    x("features", "peak memory for 316 MB of logs", "300 MB", ["extract-peak"], [300], again="`make bench`", id="extract-peak")
    x("features", "all GPU records, logs to data set, with `-j1` and `-j2`", "", ["extract-gpu-j1", "extract-gpu-j2"], again="`make bench`")
    x("features", "reading a task file of 13 MB (`all_tasks.pkl`)", "1 s", ["read-tasks"], [1], again="`make bench`", id="read-tasks")
    x("training-speed", "boosting: CPU seconds over those of XGBoost's Python package, same matrix, 5,058 x 329 and 95,679 x 329", "1.05",
        ["boost-ratio-small", "boost-ratio"], [1.05, 1.05],
      again="`scripts/bench.sh xgb`; once", id="boost-ratio")
    x("training-speed", "the network that CDMPP published: samples/s over PyTorch 1.13, one core, idle and busy", "1.5", ["train-ratio"], [1.5],
        "more", "`scripts/bench.sh train`", id="train-ratio")
    x("prediction-speed", "one candidate, steps to score, profile tuner, CPU task: p50 and p99, busy", "60 us, 300 us", ["score-one-p50",
        "score-one-p99"], [60, 300], again="`bench_predict` in `tests/bench`")
    x("prediction-speed", "2,048 candidates, steps to score: a CPU task, a GPU task (conv2d of MI50); minimum of 15 runs, busy",
        "150 ms, 300 ms (TVM: 1,600 and 29,000)", ["score-2048-cpu", "score-2048-gpu"], [150, 300], again="the same")
    x("prediction-speed", "2,048 candidates from rows: the same two tasks", "40 ms", ["score-rows-cpu", "score-rows-gpu"], [40, 40], again="the same")
    x("prediction-speed", "`--stream`, lines of a log to JSON answers, profile tuner, a core (CPU time, busy), three runs", "20,000 records/s",
        ["stream"], [20000], "more", "`bench_stream`; [stream](../reference/stream.md)", id="stream")
    x("prediction-speed", "the same from the cache; with packed features", "", ["stream-cache", "stream-packed"], again="the same")
    x("prediction-speed", "ONNX file of ResNet-50 to estimates on three devices, as a process, idle, 2 cores: warm; no schedule chosen before (models of 22 and 35 MB)", "0.2 s, 1 s", ["onnx-warm", "onnx-cold"], [0.2, 1],
      again="`cdmpp-replay --network FILE --device A,B,C --cache FOLDER`")
    x("prediction-speed", "the same with a model of 47 MB", "0.2 s, 1 s", ["onnx-warm-large", "onnx-cold-large"], [0.2, 1], again="the same")
    x("code", "programs of the CPU set that compile and give the right values, real shapes", "99 %", ["codegen-cpu-right"], [99], "more",
        "`bench_codegen TASKS LOGS check 4`", promised=True)
    x("code", "programs of the GPU set on PoCL: some blocks of each kernel at full shape (2 need more memory than PoCL gives)", "95 %",
        ["codegen-gpu-right"], [95], "more", "`bench_gpucode`", promised=True)
    x("code", "our C on a Zen 4 over TVM/LLVM's recorded time on a Zen 5, one program a task: median, 90th percentile. Two different processors, so no comparison of compilers", "",
      ["c-over-llvm-median", "c-over-llvm-p90"], again="`bench_codegen TASKS LOGS time 1`")
    x("code", "measuring programs of tasks under 30 MFLOP, end to end, 2 cores, four runs (idle, no cache; the host shares the cores)",
        "8 programs/s", ["measure-rate"], [8], "more", "`cdmpp-profile records --threads 1 --cache ''`")
    x("read", "27 ONNX graphs: shapes, types and operations that differ from onnx's own inference", "0", ["onnx-differ"], [0],
        again="`scripts/check_onnx.sh`", promised=True)
    x("read", "iterations of training: gradients, losses and updates that differ from PyTorch's autograd, by value", "0", ["grads-differ"], [0],
        again="`scripts/check_grads.sh`", promised=True)
    live = "`scripts/bench_search.py`; [tune](../reference/tune.md)"
    x("search", "live search, 3 seeds: tasks where `cdmpp` reaches in 15 trials what random reaches in 100, by medians; with seeds in pairs",
        "6 of 8", ["search-random", "search-random-pairs"], [6, 6], "more", live, test_set="live-search")
    x("search", "the same: `cdmpp` in 40 trials, online XGBoost in 100", "6 of 8", ["search-xgb", "search-xgb-pairs"], [6, 6], "more", live,
        test_set="live-search")
    rows = [r for r in b.f.rows("tune-replay") if r["set"] in ("v100", "k80") and r["split seed"] in (3, 4)]
    def medians(tuner, column):
        return [float(str(r[column]).split()[0]) for r in rows if r["tuner"] == tuner]
    ten, fifty = medians("cdmpp", "10 (zen5: 5)"), medians("cdmpp", "50 (10)")
    b.add("search", "replay on held-out tasks, V100 and K80, untouched draws: best of 10 trials and of 50, median over tasks, as part of the best known", "90 %, 97 %", bar=[(ten, 90), (fifty, 97)], better="more",
          text="%s, %s; random %s, %s" % (measured(ten, unit="%"), measured(fifty, unit="%"), measured(medians("random", "10 (zen5: 5)"), unit="%"),
              measured(medians("random", "50 (10)"), unit="%")),
          n=sum(r["tasks"] for r in rows if r["tuner"] == "cdmpp"), test_set="search-replay", again="[models.md](models.md#replay-search)")
    if "templates" in b.f.stages:
        share = b.f.figure("templates", "within")
        b.add("search", "ten templates against 1,000 random trials: tasks where the best is within 5 %", "80 %", share["value"], 80, "more", unit="%", n=share["n"],
            test_set="templates", again="`templates`, by hand", id="templates")
    x("search", "tuned code over OpenBLAS's 512^3 on one core: the same product; a 56x56x64 convolution", "60 %", ["tuned-matmul", "tuned-conv"], [60,
        60], "more", "`bench_tuned` in `tests/bench`")
    x("search", "candidates scored in the search, one core (busy): CPU conv2d, GPU", "5,000/s", ["candidates-cpu", "candidates-gpu"], [5000, 5000],
        "more", "`bench_tune`")
    x("search", "the same, `two-stage` on the GPU", "", ["candidates-two-stage"], again="`bench_tune`")
    x("search", "the search's share of the wall time, default rounds (384 trials, idle)", "10 %", ["search-share"], [10], again="`cdmpp-tune`")
    rows = b.f.rows("partition-gain")
    gain, share = [r["measured gain"] for r in rows], [r["measured of predicted"] for r in rows]
    part = "`scripts/partition_gain.sh`; [partition](../reference/partition.md)"
    b.add("devices", "eight networks split over core 0 and an OpenCL device on core 1, batch 1: gain over the better device", "1.5", gain, 1.5,
        "more", form="%.2f", n=len(rows), test_set="partition-networks", again=part)
    b.add("devices", "the same: measured gain over predicted gain", "90 %", share, 90, "more", unit="%", n=len(rows), test_set="partition-networks",
        again="the same")
    x("devices", "the same with a second device that is 30 times slower: nothing split; time over that of one device, ends of the range", "",
        ["slow-second"], again="the same")
    x("devices", "one operator: cases where the chosen split is within 5 % of the best of all measured splits; of those above 0.1 ms", "90 %",
        ["split-best", "split-best-long"], [90, 90], "more", "`scripts/partition_split.sh`", test_set="partition-split")
    x("devices", "the same: lost by time", "", ["split-lost"], again="the same", test_set="partition-split")
    x("devices", "stages (IOS), four blocks of Inception-v3: time of the search", "1 s", ["stages-search"], [1000],
        again="`scripts/partition_stages.sh`")
    x("devices", "the same: the plan's time over that of the plan found by running every stage", "1.05", ["stages-ratio"], [1.05], again="the same")
    x("devices", "5,000 operators on 4 devices planned: split plan, makespan", "10 s", ["plan-5000-split", "plan-5000-makespan"], [10, 10],
        again="`test_shard_plan_large`, `test_place_large` in `tests/predictor/partition`")

def judged(f, sets):
    """All bars in their order; and of figures of the stage bench {name: (bar, better)}."""
    b = Bars(f, sets)
    for group in (programs, tuner, networks, neusight, speed):
        group(b)
    return b.out, b.numeric
