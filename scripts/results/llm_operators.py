#!/usr/bin/env python3
"""Parts of the tables of operators of language models, and errors by kind (scripts/results/llm_operators.sh).

    llm_operators.py split TABLES OUT     TABLES/GPU/NAME.tsv.xz -> OUT/{train,rows,site,new}/GPU/NAME.tsv
    llm_operators.py sum NAME LINES...    answers of cdmpp-predict --eval -> rows of a Markdown table: NAME, kind, n, errors

A row is put into a part by a hash of what it asks, so that parts do not depend on the order of the tables:
    rows    a tenth of all rows
    site    of the others, all rows of a tenth of the sites (n and k; heads and their size; the experts' sizes)
    train   the others
    new     half of all rows of a GPU, for a model that was trained on the other GPUs' train rows (of large tables an eighth of that)"""
import collections, json, lzma, math, os, struct, sys

GPUS = {"a100_sxm": "a100-sxm4-80gb", "h100_sxm": "h100", "l40s": "l40s", "rtx_pro_6000_server": "rtx-pro-6000-server"}
TYPES = {t: i for i, t in enumerate("float32 bfloat16 half fp8 fp8_block int8 sq int8_wo int4_wo w4a16_mxfp4 w4a8_mxfp4_mxfp8 nvfp4".split())}
HEADS = ["num_heads", "num_key_value_heads", "head_dim", "window_size"]
EXPERTS = ["hidden_size", "inter_size", "topk", "num_experts", "moe_tp_size", "moe_ep_size"]
# table: number of its kind, column of the type, sizes, sizes that make a site
TABLES = {
    "gemm": (0, "gemm_dtype", ["m", "n", "k", 1], ["n", "k", 1]),
    "context_attention": (1, "attn_dtype", ["isl", "step", "batch_size"] + HEADS, HEADS),
    "generation_attention": (2, "attn_dtype", ["past", "batch_size"] + HEADS, HEADS),
    "moe": (5, "moe_dtype", ["num_tokens"] + EXPERTS, EXPERTS),
    "custom_allreduce": (6, "allreduce_dtype", ["bytes", "num_gpus"], ["num_gpus"]),
    "nccl": (None, "nccl_dtype", ["bytes", "num_gpus"], ["num_gpus"]),
}
COLLECTIVES = {"all_reduce": 6, "all_gather": 7, "reduce_scatter": 8, "alltoall": 9}
M64 = (1 << 64) - 1
K = (0xB7E151628AED2A6B, 0xBF7158809CF4F3C7, 0x243F6A8885A308D3, 0x13198A2E03707345)

class Hash:
    """cd_hash of base/core: the first of its two words."""
    def __init__(self):
        self.a, self.b = K[1], K[3]

    def step(self, x, y):
        m = (self.a ^ x ^ K[0]) * ((y + K[1]) & M64)
        self.a = ((m ^ m >> 64) + y) & M64
        m = (self.b ^ y ^ K[2]) * ((x + K[3]) & M64)
        self.b = ((m ^ m >> 64) + x) & M64

    def add(self, p):
        full = len(p) // 16 * 16
        for i in range(0, full, 16):
            self.step(*struct.unpack_from("<QQ", p, i))
        self.step(*struct.unpack("<QQ", p[full:].ljust(16, b"\0")))
        self.step(len(p), ~len(p) & M64)

def hashes(row, table, gpu):
    kind, dtype, sizes, site = TABLES[table]
    kind = COLLECTIVES[row["op_name"]] if kind is None else kind
    t = TYPES[row[dtype]]
    d = row.get("distribution", "balanced")
    skew = 0.0 if d == "balanced" else float(d[10:])
    row["past"] = int(row.get("isl") or 1) + int(row.get("step") or 0) - 1
    row["bytes"] = int(row.get("message_size", 0)) * (1 if row[dtype] == "int8" else 2)
    value = lambda c: float(c if c == 1 else row.get(c) or 0) # not recorded: the default, as our reader has it
    h = Hash()
    h.add(bytes((kind, t, TYPES[row["kv_cache_dtype"]] if "kv_cache_dtype" in row else t)))
    h.add(struct.pack("<7d", *(list(map(value, sizes)) + [0.0] * 7)[:7]))
    h.add(struct.pack("<d", skew))
    h.add(row["stack"].encode())
    h.add(row.get("kernel_source", "").encode())
    h.add(gpu.encode())
    h.add(struct.pack("<i", 1))
    s = Hash()
    s.add(bytes((kind,)))
    for c in site:
        s.add(struct.pack("<d", value(c)))
    s.add(struct.pack("<i", 1))
    return h.a, s.a

def split(tables, out):
    for gpu, name in GPUS.items():
        for table in TABLES:
            part = {}
            for p in ("train", "rows", "site", "new"):
                os.makedirs(f"{out}/{p}/{gpu}", exist_ok=True)
                part[p] = open(f"{out}/{p}/{gpu}/{table}.tsv", "w")
            with lzma.open(f"{tables}/{gpu}/{table}.tsv.xz", "rt") as f:
                head = f.readline()
                columns = head.rstrip("\n").split("\t")
                for p in part.values():
                    p.write(head)
                few = table in ("custom_allreduce", "nccl")
                for line in f:
                    h, s = hashes(dict(zip(columns, line.rstrip("\n").split("\t"))), table, name)
                    part["rows" if h % 10 == 0 else "site" if s % 10 == 0 else "train"].write(line)
                    if (h >> 8) % 2 == 0 and (few or (h >> 16) % 8 == 0):
                        part["new"].write(line)
            for p in part.values():
                p.close()

def summary(name, files):
    v = collections.defaultdict(list)
    for path in files:
        with open(path) as f:
            for line in f:
                r = json.loads(line)
                if r.get("measured_s"):
                    v[r["operator"]].append(r)
    for kind, rows in v.items():
        m = [r["measured_s"] for r in rows]
        e = sorted(abs(r["error"]) for r in rows)
        known = [r["low_s"] <= r["measured_s"] <= r["high_s"] for r in rows if r["low_s"] is not None]
        pairs = [(abs(r["line_s"] / r["measured_s"] - 1), abs(r["error"])) for r in rows if r["line_s"]]
        mean = lambda x: f"{100 * sum(x) / len(x):.1f}" if x else "-"
        bound = [abs(r["bound_s"] / t - 1) for r, t in zip(rows, m)]
        print(f"| {name} | {kind} | {len(e)} | {mean(e)} | {100 * e[len(e) // 2]:.1f} | {100 * e[len(e) * 9 // 10]:.1f} | {mean(known)} | "
              f"{mean(bound)} | {len(pairs)} | {mean([p[1] for p in pairs])} | {mean([p[0] for p in pairs])} |")

if __name__ == "__main__":
    {"split": lambda a: split(*a), "sum": lambda a: summary(a[0], a[1:])}[sys.argv[1]](sys.argv[2:])
