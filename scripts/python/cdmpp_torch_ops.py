"""cdmpp_torch_ops -- measures operators of language models with PyTorch on this machine's GPU, as tables that cdmpp-train and cdmpp-predict read
(docs/reference/llm-operators.md).

    python3 cdmpp_torch_ops.py tables/h200                              -> tables/h200/gemm.tsv, attention_prefill.tsv ...
    python3 cdmpp_torch_ops.py --kinds gemm,moe --seconds 60 tables/h200

A call is captured in a CUDA graph, many times behind each other, so that no time of the host is in it; operands stay where they are, so that a large L2
cache holds the small ones, as in other tables of this kind. A row's time is the median of seven replays; `spread` is (largest - least) / median.
The rows are drawn in one order whatever the time limit; a row that the table has is not measured again, so the same command goes on after it was stopped.
What the GPU or PyTorch refuses is named on standard error and left out.
"""
import argparse
import os
import random
import sys
import time

HEAD = {
    "gemm": "m n k",
    "attention_prefill": "isl past batch_size num_heads num_key_value_heads head_dim",
    "attention_decode": "past batch_size num_heads num_key_value_heads head_dim",
    "moe": "num_tokens hidden_size inter_size topk num_experts distribution",
    "norm": "m n",
    "elementwise": "m n",
}
M = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192)
# (n, k) of the products of published models, whole and divided between GPUs, and some small ones.
NK = ((4096, 4096), (6144, 4096), (28672, 4096), (4096, 14336), (10240, 8192), (8192, 8192), (57344, 8192), (8192, 28672), (7168, 8192), (8192, 3584),
      (2560, 2048), (2048, 2048), (11008, 2048), (2048, 5504), (5120, 5120), (27648, 5120), (5120, 27648), (3072, 1024), (1024, 3072), (768, 768), (1536, 512),
      (512, 512), (256, 4096), (2112, 7168), (24576, 1536), (7168, 16384))
HEADS = ((32, 8, 128), (8, 1, 128), (64, 8, 128), (16, 16, 64), (4, 1, 128), (40, 8, 128), (64, 8, 64), (16, 2, 128), (32, 32, 128), (12, 12, 64))
EXPERTS = ((4096, 14336, 2, 8), (2048, 768, 8, 128), (4096, 1536, 8, 128), (2048, 1408, 6, 64), (2880, 2880, 4, 32), (7168, 2048, 8, 32))


def shapes(kind):
    """All sizes of a kind, as tuples in the order of HEAD."""
    if kind == "gemm":
        return [(m, n, k) for n, k in NK for m in M]
    if kind == "attention_prefill":
        return [(isl, 0, b) + h for h in HEADS for b in (1, 2, 4, 16, 64) for isl in (16, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384) if b * isl <= 32768]
    if kind == "attention_decode":
        return [(past, b) + h for h in HEADS for b in (1, 2, 4, 8, 16, 32, 64, 128, 256) for past in (128, 512, 1024, 2048, 4096, 8192, 16384, 32768)
                if b * past * h[1] * h[2] <= 1 << 31]
    if kind == "moe":
        return [(t,) + e + ("balanced",) for e in EXPERTS for t in M]
    return [(m, n) for m in M for n in (768, 1024, 2048, 4096, 5120, 8192, 14336)]


def dtypes(kind):
    return ("bfloat16", "fp8", "float16") if kind == "gemm" else ("bfloat16",)


def kernels(kind, dtype):
    """Names of what is called, as tables have them."""
    if kind.startswith("attention"):
        return ("sdpa_cudnn", "sdpa_flash")
    return {"gemm": ("torch._scaled_mm",) if dtype == "fp8" else ("torch.nn.functional.linear",), "moe": ("torch._grouped_mm",), "norm": ("torch.nn.functional.rms_norm",)}.get(kind, ("torch.add",))


def gemm(torch, dtype, m, n, k):
    if dtype == "fp8":
        a = torch.randn(m, k, device="cuda").to(torch.float8_e4m3fn)
        b = torch.randn(n, k, device="cuda").to(torch.float8_e4m3fn).t()
        one = torch.ones((), device="cuda")
        return lambda: torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
    t = getattr(torch, dtype)
    a, b = torch.randn(m, k, device="cuda", dtype=t), torch.randn(n, k, device="cuda", dtype=t)
    return lambda: torch.nn.functional.linear(a, b)


def attention(torch, dtype, kernel, queries, past, batch, heads, kv_heads, size):
    t = getattr(torch, dtype)
    q = torch.randn(batch, queries, heads, size, device="cuda", dtype=t).transpose(1, 2)
    k = torch.randn(batch, past + queries, kv_heads, size, device="cuda", dtype=t).transpose(1, 2)
    v = torch.randn_like(k)
    backend = {"sdpa_cudnn": torch.nn.attention.SDPBackend.CUDNN_ATTENTION, "sdpa_flash": torch.nn.attention.SDPBackend.FLASH_ATTENTION}[kernel]

    def run():
        with torch.nn.attention.sdpa_kernel(backend):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=queries > 1, enable_gqa=heads != kv_heads)
    return run


def moe(torch, dtype, tokens, hidden, inter, topk, experts, distribution):
    """Rows in the order of their experts, two grouped products, and the weighted sum of a token's rows."""
    t = getattr(torch, dtype)
    x = torch.randn(tokens, hidden, device="cuda", dtype=t)
    up = torch.randn(experts, hidden, 2 * inter, device="cuda", dtype=t) / 64
    down = torch.randn(experts, inter, hidden, device="cuda", dtype=t) / 64
    expert = torch.arange(tokens * topk, device="cuda") % experts
    order = torch.argsort(expert, stable=True)
    token = order // topk
    ends = torch.cumsum(torch.bincount(expert, minlength=experts), 0).to(torch.int32)
    weight = torch.rand(tokens * topk, 1, device="cuda", dtype=t)

    def run():
        h = torch._grouped_mm(x[token], up, offs=ends)
        h = torch.nn.functional.silu(h[:, :inter]) * h[:, inter:]
        return torch.zeros_like(x).index_add_(0, token, torch._grouped_mm(h, down, offs=ends) * weight)
    return run


def call(torch, kind, dtype, kernel, s):
    if kind == "gemm":
        return gemm(torch, dtype, *s)
    if kind == "attention_prefill":
        return attention(torch, dtype, kernel, *s)
    if kind == "attention_decode":
        return attention(torch, dtype, kernel, 1, s[0], *s[1:])
    if kind == "moe":
        return moe(torch, dtype, *s)
    x = torch.randn(*s, device="cuda", dtype=getattr(torch, dtype))
    if kind == "norm":
        weight = torch.ones(s[1], device="cuda", dtype=x.dtype)
        return lambda: torch.nn.functional.rms_norm(x, (s[1],), weight)
    y = torch.randn_like(x)
    return lambda: x + y


def seconds(torch, fn):
    """(median, spread) of one call in a graph that runs some 2 ms."""
    def replays(graph, n):
        out = []
        for _ in range(n):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            graph.replay()
            end.record()
            torch.cuda.synchronize()
            out.append(begin.elapsed_time(end) * 1e-3)
        return sorted(out)

    def captured(times):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(times):
                fn()
        return graph

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        fn()
        fn()
    torch.cuda.synchronize()
    one = replays(captured(4), 3)[0] / 4
    times = max(1, min(200, int(2e-3 / max(one, 1e-7))))
    graph = captured(times)
    replays(graph, 2)
    t = replays(graph, 7)
    return t[3] / times, (t[-1] - t[0]) / t[3]


def known(path, columns):
    """Keys of the table's whole lines; half a line at the end is cut off."""
    if not os.path.exists(path):
        with open(path, "w") as f:
            f.write("\t".join(columns) + "\n")
        return set()
    data = open(path).read()
    whole = data[: data.rfind("\n") + 1]
    if whole != data:
        os.truncate(path, len(whole.encode()))
    return {tuple(line.split("\t")[:-2]) for line in whole.splitlines()[1:]}


def measure(torch, folder, kind, stack, device, limit):
    columns = ["device", "stack", "kernel", "dtype"] + HEAD[kind].split() + ["spread", "latency_s"]
    path = os.path.join(folder, kind + ".tsv")
    have, end, new, refused = known(path, columns), time.monotonic() + limit, 0, 0
    rows = [(d, k, s) for s in shapes(kind) for d in dtypes(kind) for k in kernels(kind, d)]
    random.Random(1).shuffle(rows)
    with open(path, "a") as out:
        for dtype, kernel, s in rows:
            key = (device, stack, kernel, dtype) + tuple(str(x) for x in s)
            if key in have:
                continue
            if time.monotonic() > end:
                break
            try:
                fn = call(torch, kind, dtype, kernel, s)
                t, spread = seconds(torch, fn)
            except Exception as e:  # what this GPU or this version refuses: named, and the next one
                refused += 1
                if refused <= 5:
                    print("%s %s: %s" % (kind, " ".join(key[2:]), str(e).splitlines()[0][:160]), file=sys.stderr)
                continue
            out.write("\t".join(key + ("%.4f" % spread, "%.6g" % t)) + "\n")
            out.flush()
            new += 1
    print("%s: %d rows measured, %d known before, %d refused, %d not reached" % (kind, new, len(have), refused, len(rows) - new - len(have) - refused), file=sys.stderr)


def main(argv):
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("folder", help="gets a table for each kind")
    p.add_argument("--kinds", default=",".join(HEAD), help="of: " + ", ".join(HEAD))
    p.add_argument("--seconds", type=float, default=600, help="at most, for all kinds together")
    a = p.parse_args(argv)
    kinds = a.kinds.split(",")
    bad = [k for k in kinds if k not in HEAD]
    if bad:
        p.error("%s: no such kind; there are %s" % (bad[0], ", ".join(HEAD)))
    try:
        import torch
        import torch.nn.attention
    except ImportError:
        raise SystemExit("cdmpp_torch_ops needs PyTorch")
    if not torch.cuda.is_available():
        raise SystemExit("cdmpp_torch_ops: PyTorch finds no CUDA device")
    os.makedirs(a.folder, exist_ok=True)
    device, stack = torch.cuda.get_device_name(0), "torch-" + torch.__version__.split("+")[0]
    for kind in kinds:
        measure(torch, a.folder, kind, stack, device, a.seconds / len(kinds))


if __name__ == "__main__":
    main(sys.argv[1:])
