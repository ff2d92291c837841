#!/usr/bin/env python3
"""bench_bars.py FILE -- compare what scripts/bench.sh printed with the bars of scripts/results/bars.py; `make bench BARS=1`.

A ratio counts only where one run printed it: both times are then of one machine, minute and compiler. Absolute times are compared
too where a bar is one; they are of this machine. A bar whose benchmark did not run here is told and is no failure. The last
line counts; status 1 where a bar is missed, or where nothing was compared. With --figures behind FILE: the figures, for figures.py put."""
import os, re, sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "results"))
import bars, render

# figure of the stage bench: section of bench.sh, what it prints there; of several lines the worst counts
PRINTED = {
    "features-cpu": ("cpu", r"features +([\d.]+) us"),
    "features-gpu": ("gpu", r"features +([\d.]+) us"),
    "facts-cpu": ("cpu", r"facts +([\d.]+) us"),
    "facts-gpu": ("gpu", r"facts +([\d.]+) us"),
    "extract-peak": ("gpu", r"peak RSS (\d+) MB"),
    "read-tasks": ("cpu", r"tasks +([\d.]+) s CPU"),
    "boost-ratio": ("xgb", r"CPU [\d.]+ s, Python [\d.]+ s, ratio ([\d.]+)"),
    "train-ratio": ("train", r"^ +ratio ([\d.]+)"),
    "stream": ("predict", r"^  tuner +records +(\d+) a second"),
}

UNITS = {"features-cpu": "us", "features-gpu": "us", "facts-cpu": "us", "facts-gpu": "us", "extract-peak": "MB", "read-tasks": "s", "stream": "records/s"}

def sections(lines):
    """section: its lines"""
    found, name = {}, None
    for line in lines:
        m = re.match(r"(sample|train|xgb|predict|cpu|gpu): ", line)
        name = m[1] if m else name
        found.setdefault(name, []).append(line)
    return found

def printed(lines):
    """figure: what was printed of it, a number a line"""
    of = sections(lines)
    return {n: [float(m[1]) for l in of.get(section, []) for m in [re.search(pattern, l)] if m] for n, (section, pattern) in PRINTED.items()}

def main(path, figures_only):
    with open(path) as f:
        lines = f.read().splitlines()
    want, passed, failed = render.Page(render.figures.ROOT).bench_bars, 0, 0
    for name, values in printed(lines).items():
        bar, better = want[name]
        if figures_only:
            if values:
                print("figure:%s=%g,%s" % (name, max(values) if better == "less" else min(values), UNITS.get(name, "")))
            continue
        if not values:
            print("  -    %-14s did not run" % name)
            continue
        ok = bars.holds(values, bar, better)
        passed, failed = passed + ok, failed + (not ok)
        print("  %-4s %-14s %s, bar %s %g" % ("ok" if ok else "FAIL", name, bars.measured(values), "<=" if better == "less" else ">=", bar))
    if figures_only:
        return 0
    if any(l == "bench: failed" for l in lines):
        failed += 1
    print("bench bars: %d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0

if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or (len(sys.argv) == 3 and sys.argv[2] != "--figures"):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], len(sys.argv) == 3))
