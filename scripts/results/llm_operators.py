#!/usr/bin/env python3
"""Parts of the tables of operators of language models, and errors by kind (scripts/results/llm_operators.sh).

    llm_operators.py split TABLES OUT DRAW  TABLES/GPU/NAME.tsv.xz -> OUT/{train,rows,site,new,few20,few50,other,version}/GPU/NAME.tsv
    llm_operators.py fp8 TABLE OUT        PipeWeave's products -> OUT/{fp8train,fp8rows}/gemm.tsv
    llm_operators.py sum NAME LINES...    answers of cdmpp-predict --eval -> rows of a Markdown table: NAME, kind, n, errors
    llm_operators.py decades NAME LINES...   the same by decades of the measured time

A row is put into a part by a hash of what it asks, so that parts do not depend on the order of the tables. DRAW: which bits of the hash say which rows and sites (1: those of
the first four looks; 2: others, drawn when these were used up):
    rows    a tenth of all rows
    site    of the others, all rows of a tenth of the sites (n and k; heads and their size; the experts' sizes); of collectives none: there are but three numbers of GPUs
    train   the others
    new     half of all rows of a GPU, for a model that was trained on the other GPUs' train rows (of large tables an eighth of that)
    few20, few50    20 and 50 rows of each table that are in train and not in new: what somebody measures of a GPU that nobody knows
    version         of rows, those of the A100's vLLM, a version that no other GPU has; other: train without them
    fp8rows         a tenth of PipeWeave's products; fp8train the others"""
import collections, heapq, json, lzma, os, struct, sys, zlib

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

PARTS = ("train", "rows", "site", "new", "other", "version")

def parts_of(h, s, few, row, gpu, draw):
    shift = 40 * (draw - 1)
    part = "rows" if (h >> shift) % 10 == 0 else "site" if not few and (s >> shift) % 10 == 0 else "train"
    vllm = gpu == "a100_sxm" and row["stack"].startswith("vllm")
    out = [part]
    if (h >> 8) % 2 == 0 and (few or (h >> 16) % 8 == 0):
        out.append("new")
    if part == "train" and not vllm:
        out.append("other")
    if part == "rows" and vllm:
        out.append("version")
    return out

def split_table(source, out, gpu, table, draw):
    part = {}
    for p in PARTS + ("few20", "few50"):
        os.makedirs(f"{out}/{p}/{gpu}", exist_ok=True)
        part[p] = open(f"{out}/{p}/{gpu}/{table}.tsv", "w")
    measured = []
    with lzma.open(source, "rt") as f:
        head = f.readline()
        columns = head.rstrip("\n").split("\t")
        for p in part.values():
            p.write(head)
        for line in f:
            row = dict(zip(columns, line.rstrip("\n").split("\t")))
            h, s = hashes(row, table, GPUS[gpu])
            to = parts_of(h, s, table in ("custom_allreduce", "nccl"), row, gpu, draw)
            for p in to:
                part[p].write(line)
            if to[0] == "train" and "new" not in to:
                heapq.heappush(measured, (-(h >> 24), line))
                if len(measured) > 50:
                    heapq.heappop(measured)
    for k, (_, line) in enumerate(sorted(measured, reverse=True)):
        part["few50"].write(line)
        if k < 20:
            part["few20"].write(line)
    for p in part.values():
        p.close()

def split(tables, out, draw):
    for gpu in GPUS:
        for table in TABLES:
            split_table(f"{tables}/{gpu}/{table}.tsv.xz", out, gpu, table, int(draw))

def fp8(table, out):
    part = {}
    for p in ("fp8train", "fp8rows"):
        os.makedirs(f"{out}/{p}", exist_ok=True)
        part[p] = open(f"{out}/{p}/gemm.tsv", "w")
        part[p].write("device\tdtype\tm\tn\tk\tlatency_s\n")
    with lzma.open(table, "rt") as f:
        columns = f.readline().rstrip("\n").split("\t")
        for line in f:
            r = dict(zip(columns, line.rstrip("\n").split("\t")))
            key = " ".join(r[c] for c in ("gpu", "m", "n", "k"))
            part["fp8rows" if zlib.crc32(key.encode()) % 10 == 0 else "fp8train"].write("\t".join([r["gpu"], "fp8", r["m"], r["n"], r["k"], r["latency_s"]]) + "\n")
    for p in part.values():
        p.close()

def answers(files):
    for path in files:
        with open(path) as f:
            for line in f:
                r = json.loads(line)
                if r.get("measured_s"):
                    yield r

mean = lambda x: f"{100 * sum(x) / len(x):.1f}" if x else "-"

def decades(name, files):
    v = collections.defaultdict(list)
    for r in answers(files):
        t = r["measured_s"]
        v[r["operator"], sum(t >= x for x in (1e-5, 1e-4, 1e-3, 1e-2))].append(r)
    for (kind, d), rows in sorted(v.items()):
        e = sorted(abs(r["error"]) for r in rows)
        line = [abs(r["line_s"] / r["measured_s"] - 1) for r in rows if r["line_s"]]
        bound = [abs(r["bound_s"] / r["measured_s"] - 1) for r in rows]
        where = ("below 10 us", "10 to 100 us", "100 us to 1 ms", "1 to 10 ms", "10 ms and above")[d]
        print(f"| {name} | {kind} | {where} | {len(e)} | {mean(e)} | {100 * e[len(e) // 2]:.1f} | {100 * e[len(e) * 9 // 10]:.1f} | {mean(bound)} | {mean(line)} |")

def summary(name, files):
    v = collections.defaultdict(list)
    for r in answers(files):
        v[r["operator"]].append(r)
    for kind, rows in v.items():
        m = [r["measured_s"] for r in rows]
        e = sorted(abs(r["error"]) for r in rows)
        known = [r["low_s"] <= r["measured_s"] <= r["high_s"] for r in rows if r["low_s"] is not None]
        pairs = [(abs(r["line_s"] / r["measured_s"] - 1), abs(r["error"])) for r in rows if r["line_s"]]
        bound = [abs(r["bound_s"] / t - 1) for r, t in zip(rows, m)]
        print(f"| {name} | {kind} | {len(e)} | {mean(e)} | {100 * e[len(e) // 2]:.1f} | {100 * e[len(e) * 9 // 10]:.1f} | {mean(known)} | "
              f"{mean(bound)} | {len(pairs)} | {mean([p[1] for p in pairs])} | {mean([p[0] for p in pairs])} |")

if __name__ == "__main__":
    {"split": lambda a: split(*a), "fp8": lambda a: fp8(*a), "sum": lambda a: summary(a[0], a[1:]), "decades": lambda a: decades(a[0], a[1:])}[sys.argv[1]](sys.argv[2:])
