#!/usr/bin/env python3
"""Which networks get a whole iteration of training: iterations.py PROFILE [FOLDER of ONNX files]. Prints a table of docs/reference/training.md's
form; last line: "iterations: N passed, M failed". A network passes when every operator of its iteration is in a task and the
backward part's operations are 1.7 to 2.5 times the forward part's (gcn, whose large product reads data: 1)."""
import glob
import json
import os
import subprocess
import sys

ZOO = """resnet-18 resnet-34 resnet-50 resnet-101 resnet-152 resnext-50 wide-resnet-50 resnet3d-18 resnet3d-34 alexnet vgg-11 vgg-13 vgg-16 vgg-19
mobilenet-v1 mobilenet-v2 mobilenet-v3 mobilenet-v3-small squeezenet-1.0 squeezenet-1.1 densenet-121 densenet-161 densenet-169 densenet-201
inception-v1 inception-v3 efficientnet-b0 nasnet-large dpn-68 dcgan yolov2 yolov3 yolov3-tiny yolov5n yolov5s lstm gru rnn bert-tiny bert-medium bert-base bert-large roberta-base t5-small
gpt2 vit gcn""".split()


def ask(profile, name, *more):
    source = ["--model-source", "onnx"] if name.endswith(".onnx") else []
    run = subprocess.run([profile, "--network", name, "--json", *source, *more], capture_output=True, text=True)
    try:
        return json.loads(run.stdout)
    except ValueError:
        return {"error": run.stderr.strip()[:200]}


def sum_of(t):
    return sum(x["flop"] * x["weight"] for x in t["tasks"])


def row(profile, name):
    """The line of a network, and whether it is as it should be."""
    ops = [ask(profile, name, "--list-ops", *more) for more in ((), ("--training",))]
    tasks = [ask(profile, name, "--list-tasks", *more) for more in ((), ("--training",))]
    shown = os.path.basename(name)
    for a in ops + tasks:
        if "error" in a:
            return "| %s | %s |" % (shown, a["error"]), False
    net, all_ = ops[0]["result"]["flop"], ops[1]["result"]["flop"]
    held = [t["unsupported"] for t in tasks]
    # What an update computes is not of the backward part: momentum 2, rate and weight 2 an element.
    step = sum(4 * elements(t) for t in ops[1]["result"]["outputs"] if t["name"].split("/")[-1].startswith("Sub_"))
    ratio = (all_ - net - step) / net
    line = "| %s | %d, %d | %s | %d, %d | %s | %.3g | %.2f | %.2f |" % (
        shown, len(tasks[0]["tasks"]), sum(x["weight"] for x in tasks[0]["tasks"]), "all" if not held[0] else ", ".join(sorted({u["operator"] for u in held[0]})),
        len(tasks[1]["tasks"]), sum(x["weight"] for x in tasks[1]["tasks"]), "all" if not held[1] else ", ".join(sorted({u["operator"] for u in held[1]})),
        net / 1e9, ratio, sum_of(tasks[1]) / sum_of(tasks[0]))
    low = 1 if name == "gcn" else 1.7
    return line, not held[1] and low * 0.99 <= ratio <= 2.7


def elements(t):
    n = 1
    for d in t["shape"]:
        n *= d
    return n


def main():
    profile = sys.argv[1]
    names = ZOO + (sorted(glob.glob(os.path.join(sys.argv[2], "*", "*.onnx"))) if len(sys.argv) > 2 else [])
    passed = failed = 0
    print("| network | tasks, runs | in tasks | of an iteration | in tasks | GFLOP forward | backward / forward | tasks' operations / forward's |")
    print("| --- | --: | --- | --: | --- | --: | --: | --: |")
    for name in names:
        line, ok = row(profile, name)
        passed, failed = passed + ok, failed + (not ok)
        print(line + ("" if ok else " FAIL"))
    print("iterations: %d passed, %d failed" % (passed, failed))
    return failed > 0 or passed == 0


if __name__ == "__main__":
    sys.exit(main())
