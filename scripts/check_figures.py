#!/usr/bin/env python3
"""check_figures.py -- do the pages say what the figures say?

  1. every page of docs/results, and README's marked rows, are byte for byte what scripts/results/render.py makes of docs/results/figures;
  2. no template types a number with a unit: it would be in no figure; nor does README outside its marked rows;
  3. every figures file says where it is from, and every test set that it names has a file;
  4. no promised bar is missed;
  5. no page of docs/guide, docs/reference and docs/internals types a measured result (scripts/results/typed.py).

    check_figures.py                 the last line counts, as scripts/check.sh reads it
    check_figures.py --self-test     the same on copies with planted changes, each of which must be noticed"""
import contextlib, io, json, os, re, shutil, subprocess, sys, tempfile

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "scripts/results"))
import figures, render
import typed as hand

UNIT = re.compile(r"(?<![\w.])[+-]?\d[\d.,]*\s?(?:%|(?:[unm]?s|[kMG]i?B|[kMG]?B/s|x|/s|points?|GFLOPS?|times)(?![\w/]))")
# What is no figure: levels, counts and rates that define a test.
DEFINITIONS = {"90 %", "1e-4", "80GB"}

def typed(text):
    """Numbers with a unit outside of {{ }}, code and addresses."""
    text = re.sub(r"\{\{.*?\}\}|<!-- output:[^\n]*-->|<!-- figures:.*?<!-- /figures -->|```.*?```|`[^`\n]*`|\]\([^)]*\)", " ", text, flags=re.S)
    text = "\n".join(l for l in text.splitlines() if not l.startswith("    "))
    return [m.group().strip() for m in UNIT.finditer(text) if m.group().strip() not in DEFINITIONS]

def templates(root):
    folder = os.path.join(root, "scripts/results/pages")
    for name in sorted(os.listdir(folder)):
        yield "scripts/results/pages/" + name
    yield "README.md"

def check(root):
    """What is wrong, a line each, and how many things were looked at."""
    page, wrong, looked = render.Page(root), [], 0
    for path, _ in render.differing(page):
        wrong.append("%s is not what its figures say (scripts/results/render.py)" % path)
    made = set(page.csv_files)
    for name in sorted(os.listdir(os.path.join(root, "docs/results/tables"))):
        looked += 1
        if "docs/results/tables/" + name not in made:
            wrong.append("docs/results/tables/%s: no page has this table" % name)
    for path in templates(root):
        looked += 1
        with open(os.path.join(root, path), encoding="utf-8") as f:
            wrong += ["%s: %s is typed: it is in no figure" % (path, t) for t in typed(f.read())]
    for name, d in page.figures.stages.items():
        looked += 1
        wrong += ["%s.json: no %s" % (name, k) for k in ("source", "date") if not d.get(k)]
        wrong += ["%s.json: no test set %s" % (name, t) for t in d.get("test_sets", []) if t not in page.sets]
    wrong += check_stages(page)
    more, sentences = hand.check(root)
    wrong += more
    wrong += ["a promised bar is missed: %s: %s, goal %s" % (b["what"], b["measured"], b["goal"]) for b in render.broken(page)]
    return wrong, looked + sentences + len(page.bars) + len(stages())

def stages():
    """Lines of stages.txt: script, figures, rooms, configurations, data, test sets, when."""
    with open(os.path.join(ROOT, "scripts/results/stages.txt"), encoding="utf-8") as f:
        return [l.split() for l in f if l.strip() and not l.startswith("#")]

def check_stages(page):
    """Each stage has what it names, and each computed figure a stage."""
    wrong, made = [], set()
    for script, names, rooms, configs, data, sets, _ in stages():
        made |= set(names.split(","))
        want = ["scripts/results/%s.sh" % script] + rooms.split(",") + ["configs/" + c for c in configs.split(",") if c != "-"]
        want += [d for d in data.split(",") if not d.startswith("data:")]
        want += ["docs/results/test-sets/%s.txt" % s for s in sets.split(",") if s != "-"]
        wrong += ["stages.txt: %s: no %s" % (script, w) for w in want if not os.path.exists(os.path.join(ROOT, w))]
    return wrong + ["%s.json: computed, but by no stage of stages.txt" % n for n, d in page.figures.stages.items() if d["source"] == "run" and n not in made]

# ---- planted changes ----
def edit(path, old, new):
    with open(path, encoding="utf-8") as f:
        s = f.read()
    t = re.sub(old, new, s, count=1)
    if t == s:
        raise SystemExit("check_figures: nothing to change in " + path)
    with open(path, "w", encoding="utf-8") as f:
        f.write(t)

def plant_page(root):
    edit(root + "/docs/results/models.md", r"(\| 29420 \| )\d+\.\d \|", r"\g<1>1.5 |")

def plant_long_table(root):
    edit(root + "/docs/results/tables/models-transfer.csv", r"\d+\.\d", "1.5")

def plant_left_table(root):
    shutil.copy(root + "/docs/results/tables/models-transfer.csv", root + "/docs/results/tables/models-old.csv")

def plant_readme(root):
    edit(root + "/README.md", r"(<!-- figures: programs -->(?:.*\n){4}.*\| )\d+\.\d", r"\g<1>1.5")

def plant_figure(root):
    edit(root + "/docs/results/figures/models-task.json", r"(\"cdmpp\", 2442, )\d+\.\d", r"\g<1>1.5")

def plant_verdict(root):
    edit(root + "/docs/results/README.md", r"\| missed \|", "| met |")

def plant_typed(root):
    edit(root + "/scripts/results/pages/operators.md.in", r"## Intervals\n", "## Intervals\n\nOf these, 93.2 % are inside.\n")

def plant_result(root):
    with open(root + "/docs/guide/logs-to-model.md", "a", encoding="utf-8") as f:
        f.write("\nOn this machine that takes 12.5 s,\nand the error is 31 %.\n")

def plant_other_result(root):
    edit(root + "/docs/reference/report.md", r"of 20 %", "of 21 %")

def plant_missed(root):
    edit(root + "/docs/results/figures/operators-networks.json", r"(\"NVIDIA L4\", 7), \d+\.\d", r"\1, 25.7")
    with contextlib.redirect_stdout(io.StringIO()):
        render.main(["--root", root])

def plant_looks(root):
    with open(root + "/docs/results/test-sets/live-networks.txt", "a", encoding="utf-8") as f:
        f.write("look | 2026-11-23 | - | - | one more | -\n")

def plant_stage(root):
    os.rename(root + "/docs/results/figures/quick.json", root + "/docs/results/figures/slow.json")

def plant_set(root):
    edit(root + "/docs/results/figures/live.json", r"\[\"live-networks\"\]", '["live-nothing"]')

def plant_picture(root):
    edit(root + "/docs/results/curves24-tasks.svg", r"(<circle class=\"d0\" cx=\"\d+)\.\d", r"\g<1>.55")

def self_test():
    passed = failed = 0
    for plant in (None, plant_page, plant_long_table, plant_left_table, plant_readme, plant_figure, plant_verdict, plant_typed, plant_result, plant_other_result, plant_missed, plant_looks, plant_stage, plant_set, plant_picture):
        with tempfile.TemporaryDirectory() as t:
            for d in ("docs/results", "scripts/results/pages") + hand.FOLDERS:
                shutil.copytree(os.path.join(ROOT, d), os.path.join(t, d))
            shutil.copy(os.path.join(ROOT, hand.LIST), os.path.join(t, hand.LIST))
            shutil.copy(os.path.join(ROOT, "README.md"), t)
            if plant:
                plant(t)
            try:
                wrong = check(t)[0]
            except (SystemExit, KeyError) as e:
                wrong = [str(e)]
            ok = bool(wrong) == bool(plant)
            passed, failed = passed + ok, failed + (not ok)
            if not ok:
                print("check_figures: %s: %s" % (plant.__name__ if plant else "as it is", wrong or "not noticed"))
    for part in (parts_table, parts_twice, parts_digest, parts_look, parts_bench, parts_quick):
        with tempfile.TemporaryDirectory() as t:
            ok = part(t)
            passed, failed = passed + ok, failed + (not ok)
            if not ok:
                print("check_figures: %s failed" % part.__name__)
    return passed, failed

# ---- the parts that pages are made with ----
def parts_table(t):
    """What a stage prints comes back from its figures, with signs, dashes and pairs."""
    md = "| a | b | c | d |\n| --- | ---: | --- | --- |\n| x | +1.0 | 52.5 / 5.8 | - |\n| y | -0.0 | 3.0 / 0.1 | 7 (12) |"
    d = figures.from_markdown(md)
    return figures.to_markdown(d) == md and d["rows"][0][1:] == [1, [52.5, 5.8], None]

def parts_twice(t):
    """Columns of one name keep their own cells on a page, and nobody can ask for one of them by its name."""
    md = "| a | p90 | b | p90 |\n| --- | ---: | ---: | ---: |\n| x | 1 | 2 | 3 |\n| y | 4 | 5 | 6 |"
    with open(os.path.join(t, "s.json"), "w") as f:
        json.dump({"stage": "s", "figures": {}, "tables": {"main": figures.from_markdown(md)}}, f)
    s = figures.Figures(t)
    with contextlib.suppress(KeyError):
        s.cell("s", "p90", a="x")
        return False
    return figures.to_markdown(s.table("s", "main"), s.lines("s", a="y")).endswith("| y | 4 | 5 | 6 |") and s.rows("s", a="x") == [{"a": "x", "b": 2}]

def parts_digest(t):
    """Of contents and names; not of where they are."""
    for d in ("a", "b"):
        os.makedirs(os.path.join(t, d, "room"))
        with open(os.path.join(t, d, "room/x.c"), "w") as f:
            f.write("int x;")
    here = os.getcwd()
    def of(d):
        os.chdir(os.path.join(t, d))
        try:
            return figures.digest(["room"])
        finally:
            os.chdir(here)
    same = of("a") == of("b")
    with open(os.path.join(t, "b/room/x.c"), "a") as f:
        f.write(" ")
    return same and of("a") != of("b")

def run(*argv, **env):
    return subprocess.run(argv, cwd=ROOT, env=dict(os.environ, **env), capture_output=True, text=True)

def parts_look(t):
    """A look is added; code that has looked adds none; an unknown set is an error."""
    path = os.path.join(t, "s.txt")
    with open(path, "w") as f:
        f.write("what: w\ndefinition: d\n")
    look = "scripts/test_set_look.sh"
    said = [run("sh", look, *a, TEST_SETS_DIR=t).returncode for a in (("s", "why", "12 %"), ("--by", "77", "s", "again"), ("--by", "77", "s",
        "again"), ("--by", "78", "s", "again"), ("none", "why"), ("s",))]
    looks = render.looks.read(t)["s"]["looks"]
    return said == [0, 0, 0, 0, 2, 2] and [l["code"] for l in looks] == ["-", "77", "78"] and looks[0]["result"] == "12 %"

def parts_bench(t):
    """A bar that holds, one that is missed, nothing that ran."""
    def status(ratio):
        path = os.path.join(t, "printed")
        with open(path, "w") as f:
            f.write("train: x\n        ratio %s (CPU 2.00)\n" % ratio if ratio else "")
        return run(sys.executable, "-B", "scripts/bench_bars.py", path).returncode
    return [status("2.10"), status("1.20"), status("")] == [0, 1, 1]

def parts_quick(t):
    """Within the noise passes, beyond it does not; better passes."""
    import quick
    stored = {"value": 40.0, "seeds": 3, "spread": 1.0}
    return [quick.worse("mape", v, stored) for v in (42.4, 42.5, 20.0)] == [False, True, False] and quick.worse("spearman", 0.5, {"value": 0.7,
        "seeds": 3, "spread": 0.02})

def main(argv):
    if argv == ["--self-test"]:
        passed, failed = self_test()
    else:
        wrong, looked = check(ROOT)
        print("\n".join(wrong) if wrong else "", end="\n" if wrong else "")
        passed, failed = looked - len(wrong), len(wrong)
    print("figures: %d passed, %d failed" % (passed, failed))
    return 1 if failed else 0

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
