#!/usr/bin/env python3
"""sample_logs.py FROM TO N -- some measure records of each task: FROM, a folder with a log for each task (one record a line),
into the log TO. Of N records of a task a third are its fastest; the others lie evenly in the order of their times, so that a
model learns from them what makes a schedule slow. Records that failed are left out. The same input gives the same bytes."""
import json, os, sys

FAILED = 1e9  # seconds and more: a record without a time

def records(path):
    out = []
    with open(path) as f:
        for line in f:
            cost, error = json.loads(line)["r"][:2]
            if not error and cost and 0 < sum(cost) / len(cost) < FAILED:
                out.append((sum(cost) / len(cost), line))
    return sorted(out, key=lambda r: r[0])

def sample(rec, most):
    n = min(len(rec), most)
    best = -(-n // 3)
    rest, behind = n - best, len(rec) - best
    return rec[:best] + [rec[best + (2 * i + 1) * behind // (2 * rest)] for i in range(rest)]

def main(source, target, most):
    with open(target + ".new", "w") as out:
        for name in sorted(os.listdir(source)):
            out.writelines(line for _, line in sample(records(os.path.join(source, name)), most))
    os.replace(target + ".new", target)

if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
