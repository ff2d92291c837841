#!/usr/bin/env python3
"""Measured runs of served language models as tables for cdmpp-replay --llm --runs, constants of stacks fitted to a part of them, and errors.

    serving.py runs E2E.csv OUT        -> OUT/PART.csv for each part; OUT/NAME.json, config.json of each model (sizes as published)
    serving.py fit STACK RUNS.csv YAML COMMAND...    constants of a stack that make errors of RUNS least: YAML is written again. COMMAND is cdmpp-replay with its files
    serving.py spread STACK W YAML COMMAND...    spreads of models that constants were not fitted on, from runs that were left out of the fit: YAML is written again
    serving.py models STACK W YAML COMMAND...    the same spreads are raised to those of models that nothing was fitted on, where these are wider: YAML is written again
    serving.py sum NAME ANSWERS.json...  errors of answers as rows of Markdown
    serving.py between NAME LOW.json HIGH.json   how many measured times lie between two answers of the same runs

Parts: fit-STACK (half of the runs of Qwen3-32B, by a hash of the run's name: constants come from these alone), rest-STACK (the other half), and runs of
models that nothing was fitted on: gpt-oss-STACK, deepseek-STACK. Runs whose conditions are not all recorded are parts of their own: loadless-STACK (Qwen3-32B, nobody
wrote down how many requests were in flight: answered as if it were the batch of the plan), and limitless-4, -16, -64 (gpt-oss: the same runs, answered with each
of these limits of sequences).

What the file does not say of a run is in public scripts of those who measured it:
  InferenceX (runs of gpt-oss by vLLM, of DeepSeek): utils/bench_serving draws lengths evenly from 0.8 to 1 of the nominal ones (RANDOM_RANGE_RATIO 0.8), sends 10
    requests for each in flight, after warming up; benchmarks/.../gptoss_fp4_h100*.sh starts vLLM with max-num-seqs = the requests in flight, max-num-batched-tokens 8192,
    max-cudagraph-capture-size 2048.
  The same, 21 November to 8 December 2025: that script called the load generator with max-concurrency 512, whatever the row said ("fix h100 docker error", pull
    request 310). Its runs are called c512. The server's limit was the row's 4, 8, 16, 32 or 64, of which the file tells nothing; requests were 10 times that.
  srt-slurm, recipes/trtllm/h100-fp8/*/stp (runs of DeepSeek. That they have no speculative decoding is
    concluded from their loads: those of these recipes, all of them and no other; recipes with it have some of these and others): sequences of a worker that decodes are FEWER than its part
    of the requests in flight; DECODE has them by requests in flight. A worker of prompts takes 2 sequences and 2048 tokens (prompts of 1024), or 1 and 8224. The cache is in fp8."""
import csv, hashlib, json, math, os, subprocess, sys

MODELS = {
    "qwen3-32b": {"model_type": "qwen3", "num_hidden_layers": 64, "hidden_size": 5120, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128,
                  "intermediate_size": 25600, "vocab_size": 151936, "torch_dtype": "bfloat16", "use_sliding_window": False},
    "gpt-oss": {"model_type": "gpt_oss", "num_hidden_layers": 36, "hidden_size": 2880, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64,
                "intermediate_size": 2880, "num_local_experts": 128, "num_experts_per_tok": 4, "vocab_size": 201088, "sliding_window": 128,
                "layer_types": ["sliding_attention", "full_attention"] * 18, "torch_dtype": "bfloat16", "quantization_config": {"quant_method": "mxfp4"}},
    "deepseek": {"model_type": "deepseek_v3", "num_hidden_layers": 61, "hidden_size": 7168, "num_attention_heads": 128, "q_lora_rank": 1536, "kv_lora_rank": 512,
                 "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "intermediate_size": 18432, "moe_intermediate_size": 2048, "n_routed_experts": 256,
                 "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 3, "vocab_size": 129280, "torch_dtype": "bfloat16",
                 "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}},
}
COLUMNS = ("id gpu stack tp pp dp ep workers max_sequences decode_tp decode_pp decode_dp decode_ep decode_workers decode_max_sequences kv_dtype isl osl spread concurrency requests max_tokens graph_tokens dtype node_gpus node_gbs "
           "ttft_s tpot_s").split()

REQUESTS = 10 # of a load test for each in flight: what load generators take; nobody wrote down what it was here

# Tokens of a step of the runs of Qwen3-32B, beyond a prompt and the sequences: of four rules (the library's default, 0, 1500, twice the default) those with the least errors
# on the parts fit-*. Runs of other models take the library's default.
BUDGET = {"trtllm": 0, "vllm": 1500}

DRAWN = {"1024": 922, "8192": 7373} # the mean of the lengths that InferenceX draws, by the nominal one
SPREAD = 1 / 9                      # of them around it
DECODE = {6: 1, 9: 2, 30: 8, 60: 16, 154: 64}
LIMITS = (4, 16, 64)

def model_of(path):
    return "qwen3-32b" if "Qwen3-32B" in path else "gpt-oss" if "gpt-oss" in path else "deepseek"

def number(v):
    return str(int(float(v))) if v and float(v) > 0 else ""

def run_of(r):
    """A row of the e2e file as one of ours; None where it does not say enough."""
    model, types = model_of(r["model_path"]), {"fp8": "fp8", "fp8_block": "fp8_block", "": ""}
    drawn = model == "deepseek" or (model == "gpt-oss" and r["backend"] == "vllm")
    isl, osl = (DRAWN[r["isl"]], DRAWN[r["osl"]]) if drawn else (r["isl"], r["osl"])
    out = {"id": r["id"], "gpu": "h100", "node_gpus": 8, "node_gbs": 50, "stack": r["backend"] + ("-" + r["backend_version"] if r["backend_version"] else ""), "isl": isl, "osl": osl, "spread": SPREAD if drawn else "",
           "dtype": types.get(r["gemm_quant_mode"], "") if model == "qwen3-32b" else "", "ttft_s": r["ttft_s"], "tpot_s": r["tpot_s"]}
    n = lambda k: number(r[k])
    if r["mode"] == "agg":
        dp = n("attention_dp_size") or "1"
        out.update(tp=n("tp_size"), pp=n("pp_size") or "1", dp=dp, ep=n("moe_ep_size") or "1", concurrency=n("concurrency") or n("batch_size"))
        if model == "gpt-oss" and r["backend"] == "trtllm" and not n("attention_dp_size"):
            # dp is not written down, and batch_size is the requests in flight over tp: so it is TensorRT-LLM's attention by data over all tp GPUs, as moe_tp x moe_ep = tp x dp asks
            dp = int(n("concurrency")) // int(n("batch_size"))
            out.update(tp=int(out["tp"]) // dp, dp=dp)
        if drawn:
            out["max_sequences"], out["graph_tokens"] = out["concurrency"], 2048
    else:
        for ours, theirs in (("", "prefill_"), ("decode_", "decode_")):
            for k, v in (("tp", "tp_size"), ("pp", "pp_size"), ("dp", "attention_dp_size"), ("ep", "moe_ep_size"), ("workers", "num_workers"), ("max_sequences", "batch_size")):
                out[ours + k] = n(theirs + v) or ("1" if k in ("pp", "dp", "ep") else "")
        if model != "deepseek":
            out["ep"] = out["decode_ep"] = "1"
        if model == "deepseek":
            out["kv_dtype"] = "fp8"
            out["max_sequences"], out["max_tokens"] = (2, 2048) if r["isl"] == "1024" else (1, 8224)
            out["decode_max_sequences"] = DECODE.get(int(n("concurrency") or 0), "")
        count = lambda k: int(out[k] or 0)
        out["concurrency"] = n("concurrency") or str(count("decode_workers") * count("decode_dp") * count("decode_max_sequences"))
        if not (count("workers") and count("decode_workers") and count("tp") and count("decode_tp")):
            return None
    if model == "qwen3-32b" and r["mode"] == "agg":
        out["ep"] = "1"
    if out.get("concurrency"):
        out["requests"] = REQUESTS * int(out["concurrency"])
        if model == "qwen3-32b" and r["mode"] == "agg" and r["backend"] in BUDGET:
            out["max_tokens"] = int(r["isl"]) + int(out["concurrency"]) + BUDGET[r["backend"]]
    return out if out.get("tp") and out.get("concurrency") not in (None, "", "0") else None

def limited(run, limit):
    """A run called c512 as it was, if the server took `limit` sequences."""
    out = dict(run, stack="vllm", max_sequences=limit, requests=10 * limit, concurrency=min(512, 10 * limit)) # asynchronous scheduling was switched on: as in the newest entry
    return out

def runs(e2e, folder):
    parts, left = {}, 0
    for r in csv.DictReader(open(e2e)):
        run, model = run_of(r), model_of(r["model_path"])
        if run is None or r["complete"] != "1":
            left += 1
            continue
        half = hashlib.md5(r["id"].encode()).digest()[0] & 1
        name = f"{model}-{r['backend']}"
        if model == "qwen3-32b":
            name = f"{'fit' if half and r['mode'] == 'agg' else 'rest'}-{r['backend']}" if number(r["concurrency"]) else f"loadless-{r['backend']}"
        if model == "gpt-oss" and r["backend"] == "vllm" and r["concurrency"] == "512":
            for limit in LIMITS: # runs with prompts of 8192 on 8 GPUs had no row above 16
                parts.setdefault(f"limitless-{limit}", []).append(limited(run, min(limit, 16) if r["isl"] == "8192" and run["tp"] == "8" else limit))
            continue
        parts.setdefault(name, []).append(run)
    os.makedirs(folder, exist_ok=True)
    for name, rows in parts.items():
        with open(f"{folder}/{name}.csv", "w", newline="") as f:
            w = csv.DictWriter(f, COLUMNS, lineterminator="\n")
            w.writeheader()
            w.writerows(rows)
    for name, m in MODELS.items():
        json.dump(m, open(f"{folder}/{name}.json", "w"), indent=1)
    print({k: len(v) for k, v in sorted(parts.items())}, "left out for lack of sizes:", left)

def answers(path):
    return json.load(open(path))["result"]["answers"]

def figures(rows, key):
    e = sorted(abs(a[key] / a["measured_" + key] - 1) for a in rows)
    held = [a[key[:4] + "_low_s"] <= a["measured_" + key] <= a[key[:4] + "_high_s"] for a in rows if a.get(key[:4] + "_low_s") is not None]
    ratio = sorted(a[key] / a["measured_" + key] for a in rows)
    return {"n": len(e), "mape": 100 * sum(e) / len(e), "median": 100 * e[len(e) // 2], "p90": 100 * e[len(e) * 9 // 10],
            "inside": 100 * sum(held) / len(held) if held else None, "ratio": ratio[len(ratio) // 2]}

def summary(name, *paths):
    """+N among the paths: runs that nobody can answer, for what is not recorded of them; they count as refused."""
    rows, beside = [a for p in paths if p[0] != "+" for a in answers(p)], sum(int(p) for p in paths if p[0] == "+")
    good = [a for a in rows if "refused" not in a]
    for key in ("ttft_s", "tpot_s"):
        if not good:
            print(f"| {name} | {key[:4].upper()} | 0 | - | - | - | - | - | {len(rows) + beside} |")
            continue
        f = figures(good, key)
        inside = "-" if f["inside"] is None else f"{f['inside']:.1f}"
        print(f"| {name} | {key[:4].upper()} | {f['n']} | {f['mape']:.1f} | {f['median']:.1f} | {f['p90']:.1f} | {f['ratio']:.2f} | {inside} | {len(rows) - len(good) + beside} |")

# ---- constants ----
# values that are tried of each, in turn; a rule of thumb for each is in docs/reference/serving.md
STEPS = {"ahead": [0, 1, 2, 3], "tokens": [2048, 4096, 8192, 16384], "lift": [1, 1.03, 1.06, 1.09, 1.12, 1.15, 1.2], "between_s": [0, 0.5e-6, 1e-6, 1.5e-6, 2e-6, 3e-6, 4e-6, 5e-6, 6e-6, 8e-6],
         "layer_s": [0, 1e-4, 2e-4, 3e-4, 4e-4, 5e-4, 6e-4, 7e-4, 8e-4, 9e-4, 1e-3, 1.2e-3], "step_s": [0, 0.25e-3, 0.5e-3, 1e-3, 1.5e-3, 2e-3, 3e-3, 4e-3, 6e-3],
         "sequence_s": [0, 1e-5, 2e-5, 4e-5, 6e-5, 8e-5, 1.2e-4], "request_s": [0, 0.5e-3, 1e-3, 2e-3, 3e-3, 5e-3, 8e-3, 12e-3]}

STEPS["reserve_gb"] = [1, 2, 3, 4, 5, 6, 7, 8, 10] # also of buffers that a library tries before it takes its cache
SHARES = [0.78, 0.8, 0.82, 0.84, 0.86, 0.88]      # of SGLang, which takes one by the GPU and the size of its graphs

def steps_of(stack):
    return STEPS | ({"memory_share": SHARES} if stack == "sglang" else {})

def write_yaml(path, stack, values):
    """The lines of a stack's entry with other values."""
    out, here, done = [], False, set()
    for line in open(path):
        if line.startswith("- stack:"):
            here = line.split()[2] == stack
        key = line.strip().split(":")[0]
        if here and key in values:
            line, _ = f"  {key}: {values[key]:.6g}\n", done.add(key)
        out.append(line)
    at = next(i for i, l in enumerate(out) if l.startswith("- stack:") and l.split()[2] == stack)
    out[at + 1:at + 1] = [f"  {k}: {v:.6g}\n" for k, v in values.items() if k not in done]
    open(path, "w").writelines(out)

def read_yaml(path, stack, keys=None):
    got, here = {}, False
    for line in open(path):
        if line.startswith("- stack:"):
            here = line.split()[2] == stack
        k, _, v = line.strip().partition(":")
        if here and k in (keys or steps_of(stack)):
            got.setdefault(k, float(v)) # of several versions the first
    return got

def errors(runs_csv, yaml, command):
    r = subprocess.run(command + ["--runs", runs_csv, "--json", "--quiet"], stdout=subprocess.PIPE, env=dict(os.environ, CDMPP_SERVING=yaml), check=False)
    good = [a for a in json.loads(r.stdout)["result"]["answers"] if "refused" not in a]
    # logarithms, cut: a queue that overflows is no error of a constant
    e = lambda key: [min(1, abs(math.log(a[key] / a["measured_" + key]))) for a in good]
    return sum(e("tpot_s")) / len(good) + 0.3 * sum(e("ttft_s")) / len(good), good

def fit(stack, runs_csv, yaml, *command):
    tmp = yaml + ".fit"
    best = dict.fromkeys(STEPS, 0) | {"lift": 1, "between_s": 3e-6, "tokens": 8192} | read_yaml(yaml, stack)
    def loss(v):
        open(tmp, "w").write(open(yaml).read())
        write_yaml(tmp, stack, v)
        return errors(runs_csv, tmp, list(command))[0]
    least = loss(best)
    for turn in range(2):
        before = least
        for key, values in steps_of(stack).items():
            for v in values:
                if v != best[key]:
                    x = loss(best | {key: v})
                    if x < least - 1e-5:
                        least, best = x, best | {key: v}
        print(stack, "turn", turn, f"{least:.4f}", best, flush=True)
        if before - least < 1e-4:
            break
    os.remove(tmp)
    write_yaml(yaml, stack, best)
    _, good = errors(runs_csv, yaml, list(command))
    spread = {}
    for key in ("tpot", "ttft"): # of a normal distribution 90 % lie within 1.645 standard deviations
        e = sorted(abs(math.log(a[key + "_s"] / a[f"measured_{key}_s"])) for a in good)
        spread["spread_" + key] = e[min(len(e) - 1, len(e) * 9 // 10)] / 1.645
    write_yaml(yaml, stack, spread)

# ---- runs left out of the fit ----
HOST = ("lift", "between_s", "layer_s", "step_s", "sequence_s") # of these another library's stand for those of one that was left out; a scheduler is known without a fit

def near(stack, runs_csv, yaml, start, command):
    """Constants after one round of steps to the neighbours of each value."""
    best = dict(start)
    tmp = yaml + ".near"
    def loss(v):
        open(tmp, "w").write(open(yaml).read())
        write_yaml(tmp, stack, v)
        return errors(runs_csv, tmp, command)[0]
    least = loss(best)
    for key, values in steps_of(stack).items():
        at = min(range(len(values)), key=lambda i: abs(values[i] - best[key]))
        for v in values[max(0, at - 1):at + 2]:
            if v != best[key]:
                x = loss(best | {key: v})
                if x < least - 1e-5:
                    least, best = x, best | {key: v}
    os.remove(tmp)
    return best

def logs(stack, runs_csv, yaml, values, command):
    tmp = yaml + ".left"
    open(tmp, "w").write(open(yaml).read())
    write_yaml(tmp, stack, values)
    good = errors(runs_csv, tmp, command)[1]
    os.remove(tmp)
    return {k: [abs(math.log(a[k + "_s"] / a[f"measured_{k}_s"])) for a in good] for k in ("tpot", "ttft")}

def sigma(e):
    e = sorted(e)
    return e[min(len(e) - 1, len(e) * 9 // 10)] / 1.645

def spread(stack, folder, yaml, *command):
    """Each size of tp, each number in flight and each length is left out in turn, and the library. The widest spread of these four counts."""
    path, command, start = f"{folder}/fit-{stack}.csv", list(command), read_yaml(yaml, stack)
    rows, found = list(csv.DictReader(open(path))), []
    for group in ("tp", "concurrency", "isl"):
        left = {"tpot": [], "ttft": []}
        for value in sorted({r[group] for r in rows}):
            for name, keep in (("in", lambda r: r[group] != value), ("out", lambda r: r[group] == value)):
                with open(f"{folder}/left-{stack}-{name}.csv", "w", newline="") as f:
                    w = csv.DictWriter(f, COLUMNS, lineterminator="\n")
                    w.writeheader()
                    w.writerows(r for r in rows if keep(r))
            values = near(stack, f"{folder}/left-{stack}-in.csv", yaml, start, command)
            for k, v in logs(stack, f"{folder}/left-{stack}-out.csv", yaml, values, command).items():
                left[k] += v
        found.append((group, sigma(left["tpot"]), sigma(left["ttft"])))
    left = {"tpot": [], "ttft": []}
    for other in ("trtllm", "vllm", "sglang"):
        if other != stack:
            for k, v in logs(stack, path, yaml, start | {k: v for k, v in read_yaml(yaml, other).items() if k in HOST}, command).items():
                left[k] += v
    found.append(("library", sigma(left["tpot"]), sigma(left["ttft"])))
    print(stack, " ".join("%s %.3f %.3f" % f for f in found), flush=True)
    write_yaml(yaml, stack, {"spread_tpot_other": max(f[1] for f in found), "spread_ttft_other": max(f[2] for f in found)})

def models(stack, folder, yaml, *command):
    """Runs of models that nothing was fitted on, of all libraries together: one has too few of them."""
    left = {"tpot": [], "ttft": []}
    for p in ("gpt-oss-vllm", "gpt-oss-trtllm", "deepseek-trtllm"):
        at = command.index("--llm") + 1
        name = f"{folder}/{'deepseek' if p.startswith('deepseek') else 'gpt-oss'}.json"
        for a in errors(f"{folder}/{p}.csv", yaml, list(command[:at]) + [name] + list(command[at + 1:]))[1]:
            for k in left:
                left[k].append(abs(math.log(a[k + "_s"] / a[f"measured_{k}_s"])))
    found, old = {k: sigma(e) for k, e in left.items()}, read_yaml(yaml, stack, ("spread_tpot_other", "spread_ttft_other"))
    print(stack, "tpot %.3f ttft %.3f" % (found["tpot"], found["ttft"]), "before", old, flush=True)
    write_yaml(yaml, stack, {f"spread_{k}_other": max(v, old[f"spread_{k}_other"]) for k, v in found.items()})

def between(name, low, high):
    pairs = [(a, b) for a, b in zip(answers(low), answers(high)) if "refused" not in a and "refused" not in b]
    for key in ("ttft_s", "tpot_s"):
        n = sum(min(a[key], b[key]) <= a["measured_" + key] <= max(a[key], b[key]) for a, b in pairs)
        print(f"| {name} | {key[:4].upper()} | {len(pairs)} | {n} |")

if __name__ == "__main__":
    {"fit": lambda a: fit(*a), "spread": lambda a: spread(*a), "models": lambda a: models(*a), "between": lambda a: between(*a), "runs": lambda a: runs(*a), "sum": lambda a: summary(*a)}[sys.argv[1]](sys.argv[2:])
