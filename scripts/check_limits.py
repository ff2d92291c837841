#!/usr/bin/env python3
"""check_limits.py -- are the numbers of docs/reference/limits.md those of the code?

  1. each row's number equals the constant that it names, in the file that it names;
  2. every constant of profiler/network/graph/graph_limits.h has a row;
  3. no constant has two rows.

    check_limits.py                  the last line counts, as scripts/check.sh reads it
    check_limits.py --self-test      the same on pages with planted changes, each of which must be noticed"""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(ROOT, "docs/reference/limits.md")
TABLE = "profiler/network/graph/graph_limits.h"
UNIT = {"": 1, "bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def value(text):
    """A constant expression of C: numbers, casts to size_t and the like, + - * << ( )."""
    text = re.sub(r"/\*.*", "", text).strip()
    text = re.sub(r"\((?:size_t|u?int\d+_t|long long|unsigned)\)", "", text)
    text = re.sub(r"\b(0x[0-9a-fA-F]+|\d+)[uUlL]+\b", r"\1", text)
    if not re.fullmatch(r"[0-9a-fA-Fx()+\-*<\s]+", text):
        raise ValueError(text)
    return eval(text, {"__builtins__": {}})


def constant(name, source):
    """Its value in a source: of a #define, or of an enum on one line or several."""
    m = re.search(r"^[ \t]*#define[ \t]+%s[ \t]+(.+)$" % name, source, re.M) or re.search(r"\b%s[ \t]*=[ \t]*([^,}/;]+)" % name, source)
    return value(m.group(1)) if m else None


def number(text):
    m = re.fullmatch(r"(?:2\^(\d+)|(\d+))(?: (\w+))?", text)
    if not m or (m.group(3) or "") not in UNIT:
        return None
    return (1 << int(m.group(1)) if m.group(1) else int(m.group(2))) * UNIT[m.group(3) or ""]


def check(page):
    """What is wrong, a line each, and how many rows were looked at."""
    wrong, seen = [], set()
    for k, line in enumerate(page.splitlines(), 1):
        cell = [c.strip() for c in line.split("|")[1:-1]]
        if len(cell) != 4 or cell[0] == "what a file declares" or set(cell[0]) <= set("-"):
            continue
        at = "docs/reference/limits.md:%d" % k
        if cell[1] == "none" and not cell[2]:
            continue
        named = re.fullmatch(r"`(\w+)` `([\w/.]+)`", cell[2])
        said = number(cell[1])
        if not named or said is None:
            wrong.append("%s: expected a number and `CONSTANT` `file`" % at)
            continue
        if named.groups() in seen:
            wrong.append("%s: %s a second time" % (at, named.group(1)))
        seen.add(named.groups())
        path = os.path.join(ROOT, named.group(2))
        is_ = constant(named.group(1), read(named.group(2))) if os.path.isfile(path) else None
        if is_ is None:
            wrong.append("%s: no constant %s in %s" % (at, named.group(1), named.group(2)))
        elif is_ != said:
            wrong.append("%s: %s is %d, the page says %s" % (at, named.group(1), is_, cell[1]))
    for name in re.findall(r"^#define (CD_\w+) ", read(TABLE), re.M):
        if (name, TABLE) not in seen:
            wrong.append("docs/reference/limits.md: no row for %s of %s" % (name, TABLE))
    if len(seen) < 40:
        wrong.append("docs/reference/limits.md: %d rows were found" % len(seen))
    return wrong, len(seen)


def self_test(page):
    plants = [("another number", r"\| 16 MiB \| `CD_FILE_LINE_MAX`", "| 32 MiB | `CD_FILE_LINE_MAX`"), ("another unit", r"\| 2 MiB \|", "| 2 GiB |"),
              ("another power", r"2\^48", "2^47"), ("a row that is gone", r"\| ONNX: runs.*\n", ""), ("a constant that is not there", "`MAX_OPS`", "`MOST_OPS`"),
              ("a file that is not there", r"`predictor/partition/games/qos_read\.c`", "`predictor/partition/games/qos.h`"), ("a number in words", r"\| 1000 \|", "| a thousand |"),
              ("a row twice", r"(\| a line \|.*\n)", r"\1\1")]
    missed = 0
    for what, old, new in plants:
        changed = re.sub(old, new, page, count=1)
        if changed == page or not check(changed)[0]:
            print("not noticed: " + what)
            missed += 1
    print("limits: planted: %d passed, %d failed" % (len(plants) - missed, missed))
    return missed


def main():
    page = read(PAGE)
    if sys.argv[1:] == ["--self-test"]:
        return self_test(page) != 0
    wrong, looked = check(page)
    for w in wrong:
        print(w)
    print("limits: %d passed, %d failed" % (looked - min(looked, len(wrong)), len(wrong)))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
