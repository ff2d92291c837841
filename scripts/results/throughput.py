#!/usr/bin/env python3
"""Throughput of language models served by TensorRT-LLM, all requests at once: the tables of its own document, answered by cdmpp-replay --llm --runs.

    throughput.py runs TABLES.md PART OUT      OUT/MODEL.json, config.json of each model (sizes as published); OUT/MODEL-GPU.csv, its runs on a GPU
    throughput.py table TABLES.md OUT PART     errors of OUT/MODEL-GPU.out as a Markdown table, OUT/all.md, and words for figures.py put

TABLES.md is perf-overview.md of the developer guide of NVIDIA/TensorRT-LLM: a section for each model, a table with a row for each pair of lengths and a column for each GPU with its
parallelism and type. A cell has generated tokens a second of a GPU. The document also says how they were measured: the requests (REQUESTS) come at once and have equal lengths, DEPn
is attention by data and experts over n GPUs, and the cache may take 0.95 of what is left. Limits of a step are those that the tool chooses (limits).

PART chosen (two models) was looked at while the conditions were made out; `test` was not."""
import csv, json, math, os, re, sys

REQUESTS = {(1000, 1000): 3000, (1024, 1024): 3000, (8192, 1024): 1500, (1024, 8192): 1500, (32768, 1024): 1000, (1024, 32768): 1000}
GPUS = {"H100": "h100", "H200": "h200", "B200": "b200", "GB200": "gb200"}
RTX = "rtx-pro-6000-server"
CHOSEN = ("llama-3.3-70b", "qwen3-30b-a3b")
NAMES = {"Deepseek R1 0528": "deepseek-r1", "GPT-OSS 120B": "gpt-oss-120b", "GPT-OSS 20B": "gpt-oss-20b", "LLaMA v3.3 70B": "llama-3.3-70b", "LLaMA v4 Maverick": "llama-4-maverick",
         "Qwen3 235B A22B": "qwen3-235b-a22b", "Qwen3 30B A3B": "qwen3-30b-a3b"}

def gpt_oss(layers, experts):
    return {"model_type": "gpt_oss", "num_hidden_layers": layers, "hidden_size": 2880, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 2880,
            "num_local_experts": experts, "num_experts_per_tok": 4, "vocab_size": 201088, "sliding_window": 128, "layer_types": ["sliding_attention", "full_attention"] * (layers // 2),
            "torch_dtype": "bfloat16", "quantization_config": {"quant_method": "mxfp4"}}

def qwen3_moe(layers, hidden, heads, ffn):
    return {"model_type": "qwen3_moe", "num_hidden_layers": layers, "hidden_size": hidden, "num_attention_heads": heads, "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 4 * ffn,
            "moe_intermediate_size": ffn, "num_experts": 128, "num_experts_per_tok": 8, "norm_topk_prob": True, "decoder_sparse_step": 1, "mlp_only_layers": [], "vocab_size": 151936,
            "torch_dtype": "bfloat16"}

MODELS = {
    "llama-3.3-70b": {"model_type": "llama", "num_hidden_layers": 80, "hidden_size": 8192, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 28672,
                      "vocab_size": 128256, "torch_dtype": "bfloat16"},
    "gpt-oss-120b": gpt_oss(36, 128), "gpt-oss-20b": gpt_oss(24, 32),
    "qwen3-235b-a22b": qwen3_moe(94, 4096, 64, 1536), "qwen3-30b-a3b": qwen3_moe(48, 2048, 32, 768),
    "llama-4-maverick": {"model_type": "llama4_text", "num_hidden_layers": 48, "hidden_size": 5120, "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 8192,
                         "intermediate_size_mlp": 16384, "num_local_experts": 128, "num_experts_per_tok": 1, "interleave_moe_layer_step": 2, "attention_chunk_size": 8192,
                         "no_rope_layers": [int((i + 1) % 4 != 0) for i in range(48)], "vocab_size": 202048, "torch_dtype": "bfloat16"},
    "deepseek-r1": {"model_type": "deepseek_v3", "num_hidden_layers": 61, "hidden_size": 7168, "num_attention_heads": 128, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
                    "qk_rope_head_dim": 64, "v_head_dim": 128, "intermediate_size": 18432, "moe_intermediate_size": 2048, "n_routed_experts": 256, "n_shared_experts": 1,
                    "num_experts_per_tok": 8, "first_k_dense_replace": 3, "vocab_size": 129280, "torch_dtype": "bfloat16",
                    "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}},
}
COLUMNS = "id gpu stack tp pp dp ep isl osl concurrency requests dtype experts_dtype kv_dtype memory_share prompts max_tokens max_sequences".split()
PARAMETERS = {"llama-3.3-70b": 70.6e9, "gpt-oss-120b": 116.8e9, "gpt-oss-20b": 20.9e9, "qwen3-235b-a22b": 235.1e9, "qwen3-30b-a3b": 30.5e9, "llama-4-maverick": 401.6e9, "deepseek-r1": 671e9}
GIB = {"h100": 80, "h200": 141, "b200": 180, "gb200": 185, RTX: 96}

def limits(c):
    """Tokens and sequences of a step, as the tool that measured chooses them by itself (tensorrt_llm/bench/build/tuning.py): from its own estimate of weights and cache. It computes prompts in
    parts. Experts in 4 bits count as 4 bits."""
    model, gpu, tp, pp, dp, fp4, isl, osl, _ = c
    m, ranks = MODELS[model], tp * dp
    weight = 0.5 if fp4 or model.startswith("gpt-oss") else 1
    head = m.get("head_dim", m["hidden_size"] // m["num_attention_heads"])
    token = 2 * m["num_hidden_layers"] * max(ranks, m.get("num_key_value_heads", m["num_attention_heads"])) * head * (1 if types(model, fp4, gpu)[2] else 2) / 2**30
    cache = 0.95 * (GIB[gpu] * ranks * pp - PARAMETERS[model] * weight / 2**30)
    batch = min(cache / (token * (isl + osl)), 4096) / pp
    tokens = min(batch * (1 + isl / osl), 32768)
    up = lambda x, step: step * math.ceil(x / step)
    sequences = max(64, up(batch, 32)) if batch < 256 else up(batch, 128) if batch < 1024 else up(batch, 256)
    return max(2048, up(tokens, 256)) if tokens < 4096 else up(tokens, 512) if tokens < 8192 else up(tokens, 1024), sequences

def types(model, fp4, gpu):
    """dtype, experts_dtype, kv_dtype: checkpoints of NVIDIA, whose cache is in fp8. Experts of gpt-oss stay as published, with a cache in bfloat16 before Blackwell."""
    if model.startswith("gpt-oss"):
        return "", "", "fp8" if fp4 else ""
    if model == "deepseek-r1" and not fp4:
        return "", "", "fp8"
    return ("nvfp4", "nvfp4", "fp8") if fp4 else ("fp8", "fp8", "fp8")

def cells(path):
    """(model, gpu, tp, pp, dp, fp4, isl, osl, tokens a second of a GPU) of each cell."""
    model, rtx, head = None, False, None
    for line in open(path, encoding="utf-8"):
        line = line.strip()
        if line.startswith("# "):
            name = line[2:].split(" - RTX")
            model, rtx, head = NAMES.get(name[0].strip()), len(name) > 1, None
        if not model or not line.startswith("|"):
            continue
        row = [c.strip() for c in line.strip("|").split("|")]
        if "ISL/OSL" in row[0]:
            head = row
        elif head and re.fullmatch(r"\d+/\d+", row[0]):
            isl, osl = map(int, row[0].split("/"))
            for what, value in zip(head[1:], row[1:]):
                if not value:
                    continue
                gpu = RTX if rtx else GPUS[what.split("<")[0].strip("* ")]
                n = lambda k: int((re.search(k + r"(\d+)", what) or [0, 1])[1])
                dep = n("DEP")
                yield model, gpu, 1 if dep > 1 else n(r"\bTP"), n("PP"), dep, "FP4" in what, isl, osl, float(value.replace(",", ""))

def part_of(model):
    return "chosen" if model in CHOSEN else "test"

def key(c):
    return "%s-%s-tp%d-pp%d-dp%d-%d-%d" % (c[0], c[1], c[2], c[3], c[4], c[6], c[7])

def runs(path, part, out):
    files = {}
    for c in cells(path):
        model, gpu, tp, pp, dp, fp4, isl, osl, _ = c
        if part_of(model) != part:
            continue
        n, (dtype, experts, kv) = REQUESTS[isl, osl], types(model, fp4, gpu)
        files.setdefault((model, gpu), []).append(dict(zip(COLUMNS, (key(c), gpu, "trtllm", tp, pp, dp, dp, isl, osl, n, n, dtype, experts, kv, 0.95, "chunked", *limits(c)))))
    for (model, gpu), rows in files.items():
        with open(f"{out}/{model}-{gpu}.csv", "w", newline="") as f:
            w = csv.DictWriter(f, COLUMNS, lineterminator="\n")
            w.writeheader()
            w.writerows(rows)
        json.dump(MODELS[model], open(f"{out}/{model}.json", "w"), indent=1)
        print(model, gpu)

def answers(path, out, part):
    found = {}
    for name in sorted(os.listdir(out)):
        if name.endswith(".out") and os.path.getsize(f"{out}/{name}"):
            for a in json.load(open(f"{out}/{name}"))["result"]["answers"]:
                found[a["id"]] = a
    for c in cells(path):
        if part_of(c[0]) == part:
            a = found.get(key(c), {"refused": "no answer"})
            yield c, None if "refused" in a else a

def inside(c, a):
    """Tokens of a GPU by both ends of the intervals of a request's time."""
    seconds = lambda end: a["ttft%s_s" % end] + (c[7] - 1) * a["tpot%s_s" % end]
    low, high = (a["tokens_s_gpu"] * seconds("") / seconds(end) for end in ("_high", "_low"))
    return low <= c[8] <= high

def figures_of(rows):
    e = sorted(abs(a["tokens_s_gpu"] / c[8] - 1) for c, a in rows)
    r = sorted(a["tokens_s_gpu"] / c[8] for c, a in rows)
    return 100 * sum(e) / len(e), 100 * e[len(e) // 2], 100 * e[len(e) * 9 // 10], r[len(r) // 2], 100 * sum(inside(c, a) for c, a in rows) / len(rows)

def table(path, out, part):
    every = list(answers(path, out, part))
    lines = ["| runs | n | mean error % | median % | 90 % of runs % | median of predicted / measured | in interval % | refused |", "| --- | --: | --: | --: | --: | --: | --: | --: |"]
    def put(name, rows):
        good = [(c, a) for c, a in rows if a]
        if good:
            lines.append("| %s | %d | %.1f | %.1f | %.1f | %.2f | %.1f | %d |" % ((name, len(good)) + figures_of(good) + (len(rows) - len(good),)))
    for gpu in ("h100", "h200", RTX, "b200", "gb200"):
        put(gpu, [x for x in every if x[0][1] == gpu])
    for model in MODELS:
        put(model, [x for x in every if x[0][0] == model])
    put("all", every)
    for c, a in every:
        print(key(c), "%.0f" % c[8], "%.0f %.2f" % (a["tokens_s_gpu"], a["tokens_s_gpu"] / c[8]) if a else "refused", file=sys.stderr)
    open(f"{out}/all.md", "w").write("\n".join(lines) + "\n")
    good = [(c, a) for c, a in every if a]
    mean, _, p90, _, held = figures_of(good)
    sheet = [(c, a) for c, a in good if c[1] in ("b200", "gb200")]
    print("figure:mean=%.1f,%%,%d figure:p90=%.1f,%%,%d figure:inside=%.1f,%%,%d figure:sheet=%.1f,%%,%d" % (mean, len(good), p90, len(good), held, len(good), figures_of(sheet)[0], len(sheet)))

if __name__ == "__main__":
    {"runs": runs, "table": table}[sys.argv[1]](*sys.argv[2:])
