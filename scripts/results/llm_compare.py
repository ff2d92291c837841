#!/usr/bin/env python3
"""What other methods say of the rows that scripts/results/llm_operators.sh asks for: a Markdown table of errors.

    llm_compare.py operators|gpus DATA W      DATA/repeats.tsv.xz; W: what llm_operators.py divided and cdmpp-predict answered

    roofline        operations over the peak or bytes over the bandwidth, whichever is longer: bound_s of the answers
    log-log line    between the two neighbours of the curve: line_s of the answers, where there are two
    XGBoost         depth 8, 120 rounds of 0.12, at most 12,000 rows: log2 of sizes, operations, bytes and bound, type, library, numbers of the GPU -> ln time
    XGBoost, ratio  the same -> ln(time / bound)
    wave scaling    as Habitat: the same row measured on one other GPU, times the ratios of bandwidth and of peak, by operations a byte. From H100, for H100 from
                    RTX PRO 6000; where that GPU has the row
    utilisation     as NeuSight: a share of the bound, 0 to 1, learned over operations a byte, rounds of multiprocessors and sizes
    noise floor     (largest - smallest) / smallest time of keys that were measured more than once"""
import collections, functools, json, lzma, re, sys
import numpy as np
import xgboost

GPUS = {"a100_sxm": "a100-sxm4-80gb", "h100_sxm": "h100", "l40s": "l40s", "rtx_pro_6000_server": "rtx-pro-6000-server"}
TABLES = ["gemm", "context_attention", "generation_attention", "moe", "custom_allreduce"]
NAME = dict(zip(TABLES, ["gemm", "attention_prefill", "attention_decode", "moe", "all_reduce"]))
SIZES = {"gemm": ["m", "n", "k"], "context_attention": ["isl", "step", "batch_size", "num_heads", "num_key_value_heads", "head_dim", "window_size"],
         "moe": ["num_tokens", "hidden_size", "inter_size", "topk", "num_experts", "moe_tp_size", "moe_ep_size"], "custom_allreduce": ["message_size", "num_gpus"]}
SIZES["generation_attention"] = SIZES["context_attention"]
BYTES = {"bfloat16": 2, "half": 2, "int4_wo": 0.5, "w4a16_mxfp4": 0.53, "w4a8_mxfp4_mxfp8": 0.53, "nvfp4": 0.5625}
UNIT = {"fp8": "fp8_tflops", "fp8_block": "fp8_tflops", "w4a8_mxfp4_mxfp8": "fp8_tflops", "nvfp4": "fp4_tflops", "sq": "int8_tops", "int8": "int8_tops"}
DTYPE = ["gemm_dtype", "attn_dtype", "moe_dtype", "allreduce_dtype"]
MOST = 12000

def devices():
    out, name = {}, None
    for line in open("configs/devices.yaml"):
        m = re.match(r"- name: (\S+)", line)
        name = m[1] if m else name
        m = re.match(r"  (\w+): ([0-9.]+)\s*$", line)
        if m:
            out.setdefault(name, {})[m[1]] = float(m[2])
    return out

DEVICE = devices()

def work(table, v, w, kvw):
    """Operations and bytes, as the description of the tables defines the lower bound."""
    if table == "gemm":
        return 2 * v["m"] * v["n"] * v["k"], w * (v["m"] * v["n"] + v["m"] * v["k"] + v["n"] * v["k"])
    if table == "moe":
        t = v["num_tokens"] * v["topk"] / v["moe_ep_size"]
        f = v["inter_size"] / v["moe_tp_size"]
        active = min(v["num_experts"] / v["moe_ep_size"], max(t, 1))
        return 6 * t * v["hidden_size"] * f, w * (2 * t * v["hidden_size"] + 3 * t * f + 3 * active * v["hidden_size"] * f)
    if table == "custom_allreduce":
        return 0, 4 * v["message_size"] * (v["num_gpus"] - 1) / v["num_gpus"]
    n, kv, d, b = v["num_heads"], v["num_key_value_heads"] or v["num_heads"], v["head_dim"] or 128, v["batch_size"]
    if table == "context_attention":
        s, p, win = v["isl"], v["step"], v["window_size"]
        pairs = s * (s + 2 * p) / 2 if not 0 < win < s + p else s * win
        return 4 * b * n * d * pairs, 4 * b * n * s * d + 2 * kvw * b * kv * (s + p) * d
    length = v["isl"] + v["step"] - 1
    length = min(length, v["window_size"]) if v["window_size"] else length
    return 4 * b * n * d * length, b * (4 * n * d + 2 * kv * length * d * kvw)

class Row:
    def __init__(self, table, r, gpu):
        v = {c: float(r.get(c) or (1 if c in ("moe_tp_size", "moe_ep_size", "isl") else 0)) for c in SIZES[table]}
        dtype = next(r[c] for c in DTYPE if c in r)
        kv = r.get("kv_cache_dtype", dtype)
        d = DEVICE[GPUS[gpu]]
        self.latency = float(r["latency_s"])
        flops, size = work(table, v, BYTES.get(dtype, 1), BYTES.get(kv, 1))
        peak = d[UNIT.get(dtype, "bf16_tflops")] * 1e12
        width = (d["link_gb_s"] if table == "custom_allreduce" else d["bandwidth_gb_s"]) * 1e9
        self.ops, self.mem = flops / peak, size / width
        self.bound = max(self.ops, self.mem, 1e-9)
        self.peak, self.width, self.intensity, self.ridge = peak, width, flops / max(size, 1), peak / width
        maker = r["stack"].split("-")[0]
        self.key = (dtype, kv, maker, r.get("distribution", "")) + tuple(v.values())
        waves = flops / 2 / 128 / 128 / d["cores"]
        self.x = [np.log2(s + 1) for s in v.values()] + [np.log2(flops + 1), np.log2(size + 1), np.log2(self.bound), np.log2(self.intensity + 1e-9), np.log2(waves + 1),
                  hash_of(dtype), hash_of(kv), hash_of(maker), np.log2(peak), np.log2(width), d["cores"], d["l2_kb"], d["clock_mhz"], d["process_nm"]]

CODES = {}
def hash_of(word):
    return CODES.setdefault(word, len(CODES))

def rows(path, table, gpu):
    with open(path) as f:
        c = f.readline().rstrip("\n").split("\t")
        return [Row(table, dict(zip(c, l.rstrip("\n").split("\t"))), gpu) for l in f]

@functools.lru_cache(1)
def to_train(w, part, table, gpus):
    """Drawn from all rows of these GPUs."""
    return draw([r for o in gpus for r in rows(f"{w}/{part}/{o}/{table}.tsv", table, o)], MOST)

def draw(v, most):
    return v if len(v) <= most else [v[i] for i in np.random.RandomState(1).permutation(len(v))[:most]]

def fit(train, test, target, back):
    g = xgboost.train({"max_depth": 8, "eta": 0.12, "nthread": 2, "tree_method": "hist", "seed": 1},
                      xgboost.DMatrix(np.array([r.x for r in train]), label=[target(r) for r in train]), 120)
    return [back(p, r) for p, r in zip(g.predict(xgboost.DMatrix(np.array([r.x for r in test]))).astype(float), test)]

def share(r):
    u = min(0.99, max(0.001, r.bound / r.latency))
    return np.log(u / (1 - u))

def learned(train, test):
    return {"XGBoost": fit(train, test, lambda r: np.log(r.latency), lambda p, r: np.exp(p)),
            "XGBoost, ratio": fit(train, test, lambda r: np.log(r.latency / r.bound), lambda p, r: r.bound * np.exp(p)),
            "utilisation": fit(train, test, share, lambda p, r: r.bound * (1 + np.exp(-p)))}

def scaled(source, test):
    """Habitat's rule for kernels that are not learned."""
    have = {r.key: r for r in source}
    out = []
    for r in test:
        s = have.get(r.key)
        if not s:
            out.append(None)
            continue
        part = 1 - 0.5 * s.intensity / s.ridge if s.intensity < s.ridge else 0.5 * s.ridge / s.intensity
        out.append(s.latency * (s.width / r.width) ** part * (s.peak / r.peak) ** (1 - part))
    return out

def ours(path):
    """Answers by table and line of the table."""
    out = collections.defaultdict(dict)
    for l in open(path):
        r = json.loads(l)
        if r.get("measured_s"):
            out[re.sub(r".*/|\.tsv", "", r["file"])][r["line"]] = r
    return out

def put(part, table, method, pairs):
    e = np.sort([abs(p / t - 1) for p, t in pairs])
    print(f"| {part} | {NAME[table]} | {method} | {len(e)} | {100 * e.mean():.1f} | {100 * e[len(e) // 2]:.1f} | {100 * e[len(e) * 9 // 10]:.1f} |")

def compare(w, part, folder, name, train_of, source_of):
    for table in TABLES:
        v = collections.defaultdict(list)
        for g in GPUS:
            answers = ours(f"{w}/{name}-{g}.jsonl")[table]
            asked = [(r, answers[i + 2]) for i, r in enumerate(rows(f"{w}/{folder}/{g}/{table}.tsv", table, g)) if i + 2 in answers]
            asked = draw(asked, 5000)
            if not asked:
                continue
            test, said = [a[0] for a in asked], [a[1] for a in asked]
            methods = {"roofline": [a["bound_s"] for a in said], "log-log line": [a["line_s"] for a in said], "ours": [a["latency_s"] for a in said]}
            methods.update(learned(to_train(w, train_part(folder, table), table, tuple(train_of(g))), test))
            if source_of:
                o = source_of(g)
                methods["wave scaling"] = scaled(rows(f"{w}/train/{o}/{table}.tsv", table, o), test)
            for m, p in methods.items():
                v[m] += [(x, r.latency) for x, r in zip(p, test) if x]
        for m, pairs in v.items():
            if pairs:
                put(part, table, m, pairs)

def train_part(folder, table):
    return "train" if folder == "rows" or table == "custom_allreduce" else "rows"

def noise(path):
    v = collections.defaultdict(list)
    with lzma.open(path, "rt") as f:
        c = f.readline().rstrip("\n").split("\t")
        for l in f:
            r = dict(zip(c, l.split("\t")))
            if r["table"] in NAME:
                v[r["table"]].append(float(r["max_s"]) / float(r["min_s"]))
    for table, x in v.items():
        put("repeated keys", table, "noise floor", [(t, 1) for t in x])

print("| part | operator | method | n | MAPE % | median % | 90 % of rows % |")
print("| --- | --- | --- | --: | --: | --: | --: |")
if sys.argv[1] == "gpus":
    compare(sys.argv[3], "new GPUs", "new", "new", lambda g: [o for o in GPUS if o != g], lambda g: "rtx_pro_6000_server" if g == "h100_sxm" else "h100_sxm")
else:
    compare(sys.argv[3], "rows", "rows", "rows", lambda g: GPUS, None)
    noise(sys.argv[2] + "/repeats.tsv.xz")
