#!/usr/bin/env python3
"""groups.py WORK -- quick.py, but tasks of the same first two shapes, which differ by what is fused, are on one side of the split.

A task drawn by itself may have such a twin in the training set. How much does that flatter the test?"""
import json, lzma, os, random, sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import figures, quick

def shape_groups():
    """Tasks by their first two shapes: of a convolution or product its operands, of others what is read and written."""
    with lzma.open(os.path.join(figures.ROOT, "examples/zen5/zen5.tasks.json.xz")) as f:
        keys = sorted({t["workload_key"] for t in json.load(f)["tasks"]})
    groups = {}
    for k in keys:
        groups.setdefault(json.dumps(json.loads(k)[1:3]), []).append(k)
    return groups

def by_groups(work, seed):
    """quickstart.yaml with the tasks of a fifth of the groups for the test, of a seventh for validation."""
    groups = list(shape_groups().values())
    random.Random(seed).shuffle(groups)
    cut, end = round(0.2 * len(groups)), round(0.35 * len(groups))
    with open(os.path.join(figures.ROOT, "configs/quickstart.yaml")) as f:
        text = f.read()
    lines = ["split:", "  kind: task"]
    for name, part in (("test_names", groups[:cut]), ("valid_names", groups[cut:end])):
        lines += ["  %s:" % name] + ["    - '%s'" % k for g in part for k in g]
    path = os.path.join(work, "groups.yaml")
    with open(path, "w") as f:
        f.write(text[:text.index("\nsplit:\n") + 1] + "\n".join(lines) + "\n\n" + text[text.index("\nmodel:\n") + 1:])
    return path

if __name__ == "__main__":
    work = sys.argv[1]
    os.makedirs(work, exist_ok=True)
    quick.tell([quick.train(work, s, by_groups(work, s)) for s in quick.SEEDS])
    groups = shape_groups().values()
    print("figure:tasks=%d\nfigure:twins=%d" % (sum(map(len, groups)), sum(len(g) for g in groups if len(g) > 1)))
