#!/usr/bin/env python3
"""structure.py [BUILD] -- the size and the structure of the sources in a dozen figures: files, rooms, lines,
exported functions by who calls them, header lines that a source reads, options, words of the docs.

BUILD (build/release) has the objects of the library and its commands, of which `nm` says who defines and who calls what.
One line a figure: name, value, and its goal where there is one. Nothing fails here.
"""
import collections
import os
import re
import statistics
import subprocess
import sys

os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
BUILD = sys.argv[1] if len(sys.argv) > 1 else "build/release"
TOP = ["base", "features", "dataset", "profiler", "learner", "predictor"]


def sources(end):
    return sorted(os.path.join(d, f) for top in TOP for d, _, files in os.walk(top) for f in files if f.endswith(end))


def text(path):
    with open(path, errors="replace") as f:
        return f.read()


def show(name, value, bar=""):
    print(f"{name:<62} {value:>18}  {bar}")


def callers():
    """Exported function -> (file that defines it, files that call it), of the library and the commands."""
    defines, calls = {}, collections.defaultdict(set)
    objects = [f"{BUILD}/{c[:-2]}.o" for c in sources(".c")]
    out = subprocess.run(["nm", "-A", "-g"] + [o for o in objects if os.path.exists(o)],
                         capture_output=True, text=True, check=True).stdout
    for line in out.splitlines():
        m = re.match(re.escape(BUILD) + r"/(.*)\.o:[0-9a-f ]* ([TDBRU]) (cd_\w+)$", line)
        if m and m[2] == "U":
            calls[m[3]].add(m[1] + ".c")
        elif m:
            defines[m[3]] = m[1] + ".c"
    return defines, calls


def header_lines(includes, count):
    """Lines of own headers that each source reads, directly or through another header."""
    def reach(path, seen):
        for h in includes[path]:
            if h not in seen and h in count:
                seen.add(h)
                reach(h, seen)
        return seen
    return [sum(count[h] for h in reach(c, set())) for c in sources(".c")]


def rooms_below(room, includes):
    """Rooms whose headers the sources of a room read."""
    seen = set()
    todo = [c for c in sources(".c") + sources(".h") if os.path.dirname(c) == room]
    while todo:
        for h in includes[todo.pop()]:
            if h not in seen:
                seen.add(h)
                todo.append(h)
    return {os.path.dirname(h) for h in seen if "/" in h} - {room}


def nested_conditions(code):
    """Conditional expressions inside one another, in a statement."""
    n = 0
    for statement in re.split(r"[;{}]", code):
        if re.sub(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])*\'', "", statement).count("?") > 1:
            n += 1
    return n


def help_of(command, topic):
    p = subprocess.run([f"{BUILD}/{command}", topic], capture_output=True, text=True)
    return p.stdout.splitlines()


def options():
    """Options of a command's manual page, longest --help."""
    most, total, longest = 0, 0, 0
    for name in "extract train predict profile tune replay partition".split():
        command = f"cdmpp-{name}"
        man = subprocess.run([f"{BUILD}/{command}", "--help=man"], capture_output=True, text=True).stdout
        n = len(set(re.findall(r"\\fB(?:-\w\\fR, \\fB)?(\\-\\-[\w\\-]+)", man)))
        total, most, longest = total + n, max(most, n), max(longest, len(help_of(command, "--help")))
    return total, most, longest


def main():
    c, h, tables = sources(".c"), sources(".h"), sources(".def")
    count = {f: text(f).count("\n") for f in c + h + tables + ["cdmpp.h"]}
    comment = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
    includes = collections.defaultdict(list)
    for f in c + h:
        includes[f] = re.findall(r'^#include "([^"]+)"', text(f), re.M)
    show("lines of sources (.c, .h, .def), without tests", sum(count.values()), "205000")
    show(".c files", len(c), "480")
    rooms = [r for r in text("scripts/rooms.txt").splitlines() if r and not r.startswith("#")]
    show("rooms", len(rooms), "50")
    show(".c files under 80 lines; over 800", f"{sum(count[f] < 80 for f in c)}; {sum(count[f] > 800 for f in c)}", "under 20; 0")
    show("private headers (_internal.h)", sum(f.endswith("_internal.h") for f in h))
    if os.path.isdir(BUILD):
        defines, calls = callers()
        kinds = collections.Counter()
        for name, home in defines.items():
            who = calls[name] - {home}
            room = os.path.dirname(home)
            if not who:
                kinds["tests alone"] += 1
            elif all(os.path.dirname(w) == room for w in who):
                kinds["files of its room alone"] += 1
            else:
                kinds["other rooms"] += 1
        for kind in ("other rooms", "files of its room alone", "tests alone"):
            show("exported names that are used by " + kind, kinds[kind], "300" if "files" in kind else "")
        total, most, longest = options()
        show("options of the seven commands; most in one; lines of --help", f"{total}; {most}; {longest}", "260; 45; 40")
    read = sorted(header_lines(includes, count))
    show("lines of own headers that a source reads, median; nine tenths",
         f"{statistics.median(read):.0f}; {read[len(read) * 9 // 10]}", "2000; 5000")
    show("rooms that predictor/score reaches by includes", len(rooms_below("predictor/score", includes)), "20")
    show("conditional expressions with another inside", sum(nested_conditions(comment.sub("", text(f))) for f in c), "under 100")
    pages = [os.path.join(d, f) for d, _, files in os.walk("docs") for f in files if f.endswith(".md")]
    show("words of docs", sum(len(text(f).split()) for f in pages + ["README.md", "CONTRIBUTING.md"]), "90000")


main()
