#!/usr/bin/env python3
"""What is new to a model of operators of language models, held out (scripts/results/novel.sh).

    novel.py split TABLES OUT DRAW CAP   TABLES/GPU/NAME.tsv.xz -> OUT/rows.tsv, OUT/values: CAP rows of each GPU, table, library, type and kernel, drawn by DRAW
    novel.py hold OUT WHAT VALUE DIR     -> DIR/train/GPU/NAME.tsv without the value, DIR/ask/GPU/NAME.tsv of it alone
    novel.py sum OUT                     OUT/*/answers -> OUT/table.md: what is new, values, rows, errors, and how many are inside their interval; words for figures.py put

A value is held out of all tables at once. A kernel is one only where its library keeps another one in the table, else the library would be new. Each value of an operator
counts as much: how far off it is, is one draw, however many rows it has."""
import collections, heapq, json, lzma, os, sys, zlib

GPUS = {"a100_sxm": "a100-sxm4-80gb", "h100_sxm": "h100", "l40s": "l40s", "rtx_pro_6000_server": "rtx-pro-6000-server"}
TYPE = {"gemm": "gemm_dtype", "context_attention": "attn_dtype", "generation_attention": "attn_dtype", "moe": "moe_dtype", "custom_allreduce": "allreduce_dtype", "nccl": "nccl_dtype"}
LEAST = 20   # rows of a value in a table

def names_of(table, gpu, row):
    """What a row has of each kind that can be new."""
    kv = row.get("kv_cache_dtype") or ""
    return {"GPU": gpu, "library": row["stack"], "kernel": row.get("kernel_source", ""), "dtype": row[TYPE[table]] + ("/" + kv if kv and kv != row[TYPE[table]] else ""),
            "operator": row.get("op_name") or table}

def split(tables, out, draw, cap):
    os.makedirs(out, exist_ok=True)
    count = collections.Counter()
    with open(f"{out}/rows.tsv", "w") as to:
        for gpu in GPUS:
            for table in TYPE:
                groups = collections.defaultdict(list)
                with lzma.open(f"{tables}/{gpu}/{table}.tsv.xz", "rt") as f:
                    head = f.readline().rstrip("\n")
                    columns = head.split("\t")
                    for line in f:
                        line = line.rstrip("\n")
                        n = names_of(table, gpu, dict(zip(columns, line.split("\t"))))
                        h, q = zlib.crc32((draw + line).encode()), groups[tuple(n.values())]
                        if len(q) < int(cap): heapq.heappush(q, (-h, line))
                        elif -h > q[0][0]: heapq.heapreplace(q, (-h, line))
                to.write(f"#{gpu}\t{table}\t{head}\n")
                for g in sorted(groups):
                    for _, line in sorted(groups[g], reverse=True):
                        to.write(line + "\n")
                    for what, value in zip(("GPU", "library", "kernel", "dtype", "operator"), g):
                        if value: count[what, value, table] += len(groups[g])
    values = sorted({(w, v) for (w, v, t), n in count.items() if n >= LEAST})
    with open(f"{out}/values", "w") as f:
        for w, v in values:
            f.write(f"{w}\t{v}\n")

def tables_of(out):
    """gpu, table, head, rows as (line, names)."""
    at, rows = None, []
    with open(f"{out}/rows.tsv") as f:
        for line in f:
            line = line.rstrip("\n")
            if line.startswith("#"):
                if at: yield (*at, rows)
                gpu, table, head = line[1:].split("\t", 2)
                at, rows = (gpu, table, head), []
            else:
                rows.append((line, names_of(table, gpu, dict(zip(head.split("\t"), line.split("\t"))))))
    if at: yield (*at, rows)

def hold(out, what, value, to):
    all_rows = list(tables_of(out))
    keep = collections.Counter((t, n["library"]) for _, t, _, rows in all_rows for _, n in rows if n["kernel"] != value)
    for gpu, table, head, rows in all_rows:
        train = [l for l, n in rows if n[what] != value]
        ask = [l for l, n in rows if n[what] == value and (what != "kernel" or keep[table, n["library"]])]
        for part, lines in (("train", train), ("ask", ask)):
            if lines:
                os.makedirs(f"{to}/{part}/{GPUS[gpu]}", exist_ok=True)
                with open(f"{to}/{part}/{GPUS[gpu]}/{table}.tsv", "w") as f:
                    f.write("\n".join([head] + lines) + "\n")

NEW = {"GPU": "device", "library": "stack", "kernel": "kernel", "dtype": "dtype", "operator": "operator"}

def summary(out):
    found = collections.defaultdict(list)
    for d in sorted(os.listdir(out)):
        if not os.path.exists(f"{out}/{d}/answers"): continue
        what, value = open(f"{out}/{d}/what").read().rstrip("\n").split("\t")
        with open(f"{out}/{d}/answers") as f:
            for line in f:
                r = json.loads(line)
                # rows of the value that are new in this alone, as far as the model says
                if r.get("measured_s") and NEW[what] in (r["new"] or "").split("+"):
                    found[what, value, r["operator"]].append(r)
    lines = ["| what is new | values | operators and values | n | median error % | no interval % | in interval % | interval, times |", "| --- | --: | --: | --: | --: | --: | --: | --: |"]
    for what in NEW:
        cells = {k: v for k, v in found.items() if k[0] == what}
        known = {k: [r for r in v if r["low_s"] is not None] for k, v in cells.items()}
        known = {k: v for k, v in known.items() if v}
        e = sorted(abs(r["error"]) for v in cells.values() for r in v)
        if not e: continue
        n, told = len(e), sum(map(len, known.values()))
        share = [sum(r["low_s"] <= r["measured_s"] <= r["high_s"] for r in v) / len(v) for v in known.values()]
        wide = sorted(r["high_s"] / r["latency_s"] for v in known.values() for r in v)
        inside = f"{100 * sum(share) / len(share):.1f}" if share else "-"
        times = f"{wide[len(wide) // 2]:.2f}" if wide else "-"
        if share: print(f"figure:inside-{what}={inside},%,{told},1")
        lines.append(f"| {what} | {len({k[1] for k in cells})} | {len(cells)} | {n} | {100 * e[n // 2]:.1f} | {100 * (n - told) / n:.1f} | {inside} | {times} |")
    with open(f"{out}/table.md", "w") as f:
        f.write("\n".join(lines) + "\n")

if __name__ == "__main__":
    {"split": split, "hold": hold, "sum": summary}[sys.argv[1]](*sys.argv[2:])
