#!/usr/bin/env python3
"""The attributes that the graph knows (profiler/network/graph/graph_attrs.c) against those of onnx.defs: for each operator of ONNX's own domain that the graph has a rule for,
every attribute of every version from opset 7 on must be in the list, and the list may have no other name (but those of opsets that this onnx does not know).
python3 onnx_attrs.py ROOT. Needs python3-onnx. Last line: "onnx attributes: N passed, M failed"."""
import os
import re
import sys

import onnx

# Names that are ours, or of opsets newer than some versions of python3-onnx.
OURS = {"ConstantOfShape": {"dtype"}}
NEWER = {"output_dtype", "block_size", "precision", "saturate", "round_mode", "antialias", "keep_aspect_ratio_policy", "stash_type", "num_outputs", "dilations", "ceil_mode",
         "noop_with_empty_axes", "axes", "epsilon", "num_groups"}


def lists(root):
    text = open(os.path.join(root, "profiler/network/graph/graph_attrs.c")).read()
    for name, value in re.findall(r'^#define (\w+)\s+"([^"]*)"', text, re.M):
        text = re.sub(r'\b%s\b ?(?=[",}])|\b%s\b(?= ")' % (name, name), '"%s"' % value, text)
    known = {}
    for ops, attrs in re.findall(r'^    \{"((?:[\w ]|"\s*")+)",\s*((?:"[^"]*"\s*)+)\},', text, re.M):
        for op in re.sub(r'"\s*"', "", ops).split():  # a text that is cut in two
            known[op] = set("".join(re.findall(r'"([^"]*)"', attrs)).split())
    return known


def rules(root):
    return set(re.findall(r'^    \{"(\w+)",\s*\d', open(os.path.join(root, "profiler/network/graph/graph_rule.c")).read(), re.M))


def main():
    root = sys.argv[1]
    known, ops, good, bad = lists(root), rules(root), 0, 0
    newest = onnx.defs.onnx_opset_version()
    defined = {}
    for s in onnx.defs.get_all_schemas_with_history():
        if s.domain == "" and s.name in ops and not s.deprecated:
            defined.setdefault(s.name, {})[s.since_version] = set(s.attributes)
    for op, versions in sorted(defined.items()):
        first = max([v for v in versions if v <= 7] or [min(versions)])
        names = set().union(*(a for v, a in versions.items() if v >= first))
        tensors = {"value"} if op == "Constant" else set()
        missing = names - known.get(op, set()) - tensors
        extra = known.get(op, set()) - names - OURS.get(op, set()) - (NEWER if newest < 28 else set())
        for a in sorted(missing):
            print("%s: attribute %s is not in graph_attrs.c" % (op, a))
        for a in sorted(extra):
            print("%s: attribute %s is in graph_attrs.c and not in opset %d" % (op, a, newest))
        good += len(names) - len(missing)
        bad += len(missing) + len(extra)
    print("onnx attributes: %d passed, %d failed" % (good, bad))
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
