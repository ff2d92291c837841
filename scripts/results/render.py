#!/usr/bin/env python3
"""Pages of docs/results, and README's rows, from figures and templates.

    render.py [--root FOLDER]           write the pages
    render.py --check [--root FOLDER]   say which pages differ from what would be written, and write nothing

A table of more than LONG rows is a file of docs/results/tables that the page names.

A template scripts/results/pages/NAME.md.in is Markdown with {{ expressions }} of Python; what they may use is in `names` below. Rows of
README.md stand between <!-- figures: NAME --> and <!-- /figures --> and come from pages/NAME.in. A template holds no figure of its own.
Status 1: a page differs, or a promised bar is missed (bars.py)."""
import csv, io, os, re, sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import bars, curve_picture, figures, looks

CONVERTED = "converted from"
LONG = 12 # a table of more rows is a CSV file beside the page

def spread(values, form="%.1f"):
    """mean +- standard deviation over seeds"""
    return (form + " +- " + form) % (figures.mean(values), figures.deviation(values))

class Page:
    def __init__(self, root):
        self.root = root
        self.figures = figures.Figures(os.path.join(root, "docs/results/figures"))
        self.sets = looks.read(os.path.join(root, "docs/results/test-sets"))
        self.bars, self.bench_bars = bars.judged(self.figures, self.sets)
        self.csv_files = {} # path: content, of the long tables of the pages made so far

    # ---- what templates call ----
    def fig(self, stage, name, form=None):
        f = self.figures.figure(stage, name)
        return bars.measured(f["value"], form or "%s", f.get("unit", ""))

    def runs(self, stage, name):
        """Over how many seeds a figure is the mean."""
        return self.figures.figure(stage, name)["seeds"]

    def table(self, stage, name="main", **where):
        """A table, or of a long one the columns and a link to its CSV file."""
        t, rows = self.figures.table(stage, name), self.figures.lines(stage, name, **where)
        if len(rows) <= LONG:
            return figures.to_markdown(t, rows)
        names = [c["name"] for c in t["columns"]]
        words = [stage] + ([name] if name != "main" else []) + [str(v) for v in where.values()]
        path = "tables/%s.csv" % re.sub(r"[^A-Za-z0-9.]+", "-", "-".join(words)).strip("-")
        out = io.StringIO()
        w = csv.writer(out, lineterminator="\n")
        w.writerow(names)
        w.writerows([figures.text(v, c.get("format")) for v, c in zip(r, t["columns"])] for r in rows)
        self.csv_files["docs/results/" + path] = out.getvalue()
        return "%d rows of %s: [%s](%s)." % (len(rows), ", ".join(n for n in names if n), path, path)

    def seeds(self, stage, by, column):
        """Mean and standard deviation of a column over the rows that agree in `by`."""
        groups = {}
        for r in self.figures.rows(stage):
            groups.setdefault(tuple(str(r[b]).split(", seed")[0] for b in by), []).append(r[column])
        out = ["| " + " | ".join(by + ["seeds", column]) + " |", "| " + " | ".join(["---"] * len(by) + ["---:", "---:"]) + " |"]
        return "\n".join(out + ["| %s | %d | %s |" % (" | ".join(k), len(v), spread(v)) for k, v in groups.items()])

    def bar_table(self, group, ids=""):
        out = ["| what | goal | measured | n | looks | verdict | again with |", "| --- | --- | --- | ---: | ---: | --- | --- |"]
        for b in self.bars:
            if b["group"] == group and b["id"].startswith(ids):
                out.append("| %s | %s | %s | %s | %s | %s | %s |" % tuple(b[k] for k in ("what", "goal", "measured", "n", "looks", "verdict",
                    "again")))
        return "\n".join(out)

    def figure_table(self, stage):
        out = ["| figure | mean | seeds | standard deviation | n |", "| --- | ---: | ---: | ---: | ---: |"]
        for n, f in self.figures.stage(stage)["figures"].items():
            if "seeds" in f:
                out.append("| %s | %s | %s | %s | %s |" % (n, bars.measured(f["value"], "%s", f.get("unit", "")), f["seeds"], f["spread"], f["n"]))
        return "\n".join(out)

    def missed(self):
        return [b for b in self.bars if b["verdict"].startswith("missed")]

    def look_table(self, name):
        s = self.sets[name]
        out = ["| look | when | what for | result |", "| ---: | --- | --- | --- |"]
        return "\n".join(out + ["| %d | %s | %s | %s |" % (k + 1, l["date"], l["why"], l["result"]) for k, l in enumerate(s["looks"])])

    def set_table(self):
        out = ["| test set | what | looks | file |", "| --- | --- | ---: | --- |"]
        for n, s in self.sets.items():
            out.append("| %s | %s | %d | [%s.txt](test-sets/%s.txt) |" % (n, s["what"], len(s["looks"]), n, n))
        return "\n".join(out)

    def newest(self):
        """Of each room the digest that the last run knew."""
        rooms = {}
        for d in sorted((d for d in self.figures.stages.values() if d["source"] == "run"), key=lambda d: d["date"]):
            rooms.update(r.split(":") for r in (d.get("code") or "").split())
        return rooms

    def source_table(self, prefix):
        """Where the figures of a page come from; of older code: a room has changed since, as some later run says."""
        newest = self.newest()
        out = ["| stage | figures | commit | day | seconds | test sets (looks) |", "| --- | --- | --- | --- | ---: | --- |"]
        for n, d in self.figures.stages.items():
            if not re.match(prefix, n):
                continue
            source = d["source"]
            if source == "run":
                old = [r for r in (d.get("code") or "").split() if newest[r.split(":")[0]] != r.split(":")[1]]
                source = "computed" + (", by older code of " + ", ".join(r.split(":")[0] for r in old) if old else "")
            sets = ", ".join("%s (%d)" % (t, len(self.sets[t]["looks"])) for t in d.get("test_sets", [])) or "-"
            out.append("| %s | %s | %s | %s | %s | %s |" % (n, source, d.get("commit") or "-", d["date"][:10], d.get("seconds") or "-", sets))
        return "\n".join(out)

    # ---- parts of one page ----
    def part(self, name, *stages):
        """pages/NAME.part where all its stages have run; a page is readable before that."""
        if any(n not in self.figures.stages for n in stages):
            return ""
        with open(os.path.join(self.root, "scripts/results/pages", name + ".part"), encoding="utf-8") as f:
            return self.fill(f.read())

    def text(self, stage, name):
        return self.figures.stage(stage)["texts"][name].rstrip("\n")

    def day(self, stage, name):
        """When a text was written down, where its stage did not run."""
        return self.figures.stage(stage)["days"][name]

    def readme_row(self, what, stage, test_set, published=None, **where):
        rows = {r["model"]: r for r in self.figures.rows(stage, **where) if stage != "models-network" or "nasnet" in r["split"]}
        n, ours, theirs, kind = rows["cdmpp"]["n"], rows["cdmpp"]["MAPE"], rows["XGBoost"]["MAPE"], "XGBoost, median"
        if "models-tilted" in self.figures.stages:
            for r in self.figures.rows("models-tilted", set=where["set"], split=rows["cdmpp"]["split"]):
                theirs, kind = r["MAPE"], "XGBoost"
        more = "; %s (CDMPP, on its programs)" % self.fig("published", published) if published else ""
        return self.readme_line(what, n, test_set, "%.1f" % ours, rows["cdmpp"]["90 % interval holds"], "%.1f (%s)%s" % (theirs, kind, more))

    def readme_line(self, what, n, test_set, error, inside, others):
        """inside: share of the measurements in the 90 % interval; None: not measured."""
        return "| %s | %s | %d | %s | %s | %s |" % (what, "{:,}".format(n), len(self.sets[test_set]["looks"]), error, "" if inside is None else "%.1f" % inside, others)

    def nvidia(self):
        return [r for r in self.figures.rows("operators-training") if not r["GPU"].startswith("AMD")]

    def training_row(self, what):
        r = self.nvidia()
        return self.readme_line(what, sum(x["n"] for x in r), "neusight-training", "%.1f" % bars.weighted(r, "mean error"), None, "%.1f (NeuSight)" % bars.weighted(r, "NeuSight"))

    def networks_row(self, what):
        """Both runs of each network were measured: two errors."""
        r = [x for x in self.figures.rows("replay-e2e", "means") if x["networks"] == "all"][0]
        return self.readme_line(what, r["n"], "e2e-networks", "%.1f, %.1f" % tuple(r["predicted, none of these networks in training"]), None, "")

    def partition_row(self, what):
        r = self.figures.rows("partition-gain")
        return self.readme_line(what, len(r), "partition-networks", "%.1f" % (sum(abs(x["measured of predicted"] - 100) for x in r) / len(r)), None, "")

    def figure_row(self, what, stage, name, test_set, other=None, inside=None):
        """other: a figure of the same stage, with whose it is behind it in brackets; inside: one that says how often the interval holds.
        The line of a stage that has not run is left out."""
        if stage not in self.figures.stages:
            return "\0"
        f = self.figures.figure(stage, name)
        theirs = "%.1f %s" % (self.figures.figure(stage, other.split(" ")[0])["value"], other.split(" ", 1)[1]) if other else ""
        holds = self.figures.figure(stage, inside)["value"] if inside else None
        return self.readme_line(what, f["n"], test_set, "%.1f" % f["value"], holds, theirs)

    def training_behind(self):
        return sum(r["mean error"] > r["NeuSight"] for r in self.nvidia())

    # ---- templates ----
    def names(self):
        f = self.figures
        mine = ("fig", "runs", "table", "text", "day", "seeds", "bar_table", "figure_table", "missed", "look_table", "set_table", "part", "readme_row",
            "training_row", "figure_row", "networks_row", "partition_row", "training_behind")
        return {**{n: getattr(self, n) for n in mine}, "cell": f.cell, "sources": self.source_table,
            "all_bars": lambda: [b for b in self.bars if b["verdict"]],
            "converted": lambda: [n for n, d in f.stages.items() if d["source"].startswith(CONVERTED)], "all_stages": lambda: f.stages,
                "has": lambda s: s in f.stages, "value": lambda s, n: f.figure(s, n)["value"], "n_of": lambda s, n: f.figure(s, n)["n"],
                "looks": lambda n: len(self.sets[n]["looks"])}

    def fill(self, template):
        names = self.names()
        def one(m):
            try:
                return str(eval(m[1].strip(), names)) # noqa: S307: templates are ours
            except Exception as e:
                raise SystemExit("render: {{ %s }}: %s: %s" % (m[1].strip(), type(e).__name__, e))
        return re.sub(r"\{\{(.*?)\}\}", one, template, flags=re.S).replace("\0\n", "")

    def pages(self):
        """path, content of all pages"""
        folder = os.path.join(self.root, "scripts/results/pages")
        rows = {}
        for name in sorted(os.listdir(folder)):
            if name.endswith(".part"):
                continue
            with open(os.path.join(folder, name), encoding="utf-8") as f:
                content = self.fill(f.read())
            if name.endswith(".md.in"):
                yield "docs/results/" + name[:-3], content
            else:
                rows[name[:-3]] = content
        yield "README.md", self.marked("README.md", rows)
        yield from self.csv_files.items()
        yield from self.pictures()

    def pictures(self):
        """Curves of stages that have run."""
        if "models-curves24" in self.figures.stages:
            for by in ("programs", "tasks"):
                rows = [r for r in self.figures.rows("models-curves24", by)]
                yield "docs/results/curves24-%s.svg" % by, curve_picture.picture(rows, by, "Errors by number of training %s" % by)

    def marked(self, path, rows):
        with open(os.path.join(self.root, path), encoding="utf-8") as f:
            page = f.read()
        used = []
        def one(m):
            used.append(m[1])
            return "<!-- figures: %s -->\n%s<!-- /figures -->" % (m[1], rows[m[1]])
        page = re.sub(r"<!-- figures: ([\w-]+) -->\n.*?<!-- /figures -->", one, page, flags=re.S)
        if sorted(used) != sorted(rows):
            raise SystemExit("render: %s: marked rows are %s, templates are %s" % (path, sorted(used), sorted(rows)))
        return page

def broken(page):
    return [b for b in page.missed() if b["promised"]]

def differing(page):
    for path, content in page.pages():
        try:
            with open(os.path.join(page.root, path), encoding="utf-8") as f:
                if f.read() == content:
                    continue
        except FileNotFoundError:
            pass
        yield path, content

def main(argv):
    root = argv[argv.index("--root") + 1] if "--root" in argv else figures.ROOT
    page, bad = Page(root), 0
    for path, content in list(differing(page)):
        if "--check" in argv:
            print("render: %s is not what its figures say: scripts/results/render.py" % path)
            bad = 1
        else:
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            figures.write(os.path.join(root, path), content)
            print("render: " + path)
    for b in broken(page):
        print("render: a promised bar is missed: %s: %s, goal %s" % (b["what"], b["measured"], b["goal"]))
        bad = 1
    return bad

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
