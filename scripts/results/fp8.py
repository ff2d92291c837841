#!/usr/bin/env python3
"""FP8 products of PipeWeave's artefact (zksainx/pipeweave): H20 and H800 train, H20, H800, H100 and H200 are asked (scripts/results/fp8.sh).

    fp8.py rows TABLE GIT OUT [PART]     OUT/train.tsv from TABLE (data llm/pipeweave), OUT/ask/GPU.tsv from the artefact's own test table
    fp8.py table NAME=LINES...           answers of cdmpp-predict --eval -> a Markdown table, a row each and one of all; words for figures.py put on standard error

PART test (the default): rows whose sizes have an odd crc32; chosen: the others, by which the rule for GPUs of the same chip was chosen."""
import csv, io, json, lzma, math, os, subprocess, sys, zlib

HEAD = "op\tdevice\tdtype\tm\tn\tk\tlatency_s\n"

def rows(table, git, out, part="test"):
    os.makedirs(out + "/ask", exist_ok=True)
    with lzma.open(table, "rt") as f, open(out + "/train.tsv", "w") as to:
        columns = f.readline().rstrip("\n").split("\t")
        to.write(HEAD)
        for line in f:
            r = dict(zip(columns, line.rstrip("\n").split("\t")))
            to.write("\t".join(["gemm", r["gpu"], "fp8", r["m"], r["n"], r["k"], r["latency_s"]]) + "\n")
    text = subprocess.run(["git", "--git-dir", git, "show", "HEAD:dataset/gemm_fp8_test.csv"], check=True, capture_output=True, text=True).stdout
    asked = {}
    for r in csv.DictReader(io.StringIO(text)):
        odd = zlib.crc32(("%s %s %s" % (r["M"], r["N"], r["K"])).encode()) % 2
        if odd == (part == "test"):
            gpu = r["hardware"].split()[-1].lower()
            asked.setdefault(gpu, []).append("\t".join(["gemm", gpu, "fp8", r["M"], r["N"], r["K"], "%.9g" % (float(r["avg_duration"]) * 1e-6)]) + "\n")
    for gpu, lines in asked.items():
        with open("%s/ask/%s.tsv" % (out, gpu), "w") as to:
            to.write(HEAD + "".join(lines))

def read(name):
    with open(name) as f:
        return [r for r in map(json.loads, f) if r.get("measured_s") and r.get("latency_s")]

def line(name, answers, of=None):
    """A row; of: what it was trained on, where it is not told by the answers."""
    off = sorted(100 * abs(r["latency_s"] / r["measured_s"] - 1) for r in answers)
    bound = [100 * abs(r["bound_s"] / r["measured_s"] - 1) for r in answers]
    inside = [100.0 * (r["low_s"] <= r["measured_s"] <= r["high_s"]) for r in answers if r["low_s"]]
    twins = {r["twin"] for r in answers if "twin" in r}
    mean = sum(off) / len(off)
    print("| %s | %s | %d | %.1f | %.1f | %.1f | %.1f | %.1f |" % (name, of or ", ".join(sorted(twins)) or "itself", len(off), mean, off[len(off) // 2], off[int(0.9 * len(off))], sum(inside) / max(1, len(inside)),
                                                           sum(bound) / len(bound)))
    return mean, sum(inside) / max(1, len(inside)), len(off)

def table(*parts):
    print("| GPU | trained on | n | MAPE % | median % | 90 % of rows % | in interval % | lower bound MAPE % |")
    print("| --- | --- | --: | --: | --: | --: | --: | --: |")
    every = []
    for p in parts:
        name, path = p.split("=", 1)
        answers = read(path)
        every += answers
        line(name.upper(), answers)
    mean, inside, n = line("all", every, "two of them")
    twins = [r for r in every if "twin" in r]
    covered = 100.0 * sum(r["low_s"] <= r["measured_s"] <= r["high_s"] for r in twins) / max(1, len(twins))
    off = 100 * sum(abs(r["latency_s"] / r["measured_s"] - 1) for r in twins) / max(1, len(twins))
    print("figure:all=%.2f,%%,%d figure:twins=%.2f,%%,%d figure:twins-inside=%.2f,%%,%d" % (mean, n, off, len(twins), covered, len(twins)), file=sys.stderr)

if __name__ == "__main__":
    {"rows": rows, "table": table}[sys.argv[1]](*sys.argv[2:])
