#!/usr/bin/env python3
"""Figures of docs/results: a JSON file a stage, in docs/results/figures.

    figures.py digest PATH...                      12 hex digits of what these files and folders hold
    figures.py put STAGE [NAME=VALUE...]           write STAGE.json; what is known of the run comes from the environment:
        table:NAME=FILE     a Markdown table       text:NAME=FILE     text as it is
        figure:NAME=VALUE[,UNIT[,N[,SEEDS[,SPREAD]]]]
        CODE (room:digest ...) CONFIG DATA (digests) T0 (when it began, seconds of the epoch) SEED TEST_SETS (names) SOURCE

A stage writes what it measured and nothing else. Pages are made from these files by render.py; bars are in bars.py.
A cell of a table is a number, a list of numbers, text, or null where the page has a dash; each column has its format."""
import datetime, hashlib, json, math, os, re, subprocess, sys, time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NUMBER = re.compile(r"(?<![\w.])[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.])")

# ---- digests ----
def digest(paths):
    """Of names and contents, so that a file that moves counts; hidden files and compiled Python do not."""
    h = hashlib.sha256()
    for path in paths:
        for name in sorted(files(path)):
            with open(name, "rb") as f:
                h.update(name.encode() + b"\0" + hashlib.sha256(f.read()).digest())
    return h.hexdigest()[:12]

def files(path):
    if not os.path.isdir(path):
        return [path]
    return [os.path.join(d, n) for d, _, names in os.walk(path) for n in names if not n.startswith(".") and not n.endswith(".pyc")]

# ---- Markdown tables ----
def split_row(line):
    return [c.strip() for c in re.split(r"(?<!\\)\|", line.strip()[1:-1])]

def spec(number):
    m = re.match(r"([+-]?)\d+(?:\.(\d+))?(e)?", number)
    if m[3]:
        return None
    sign = "+" if m[1] == "+" else ""
    return "%%%s.%df" % (sign, len(m[2] or ""))

def shape(cell):
    """The format of a cell and its numbers; None: text."""
    found = NUMBER.findall(cell)
    specs = [spec(n) for n in found]
    if not found or None in specs:
        return None, cell
    return NUMBER.sub("\0", cell.replace("%", "%%")), [float(n) for n in found], specs

def column(cells):
    """Format and values of a column: numbers where all cells that are no dash have one form."""
    shapes = [shape(c) for c in cells if c not in ("", "-")]
    forms = {s[0] for s in shapes}
    if len(forms) != 1 or None in forms:
        return None, cells
    each = [max((s[2][k] for s in shapes), key=lambda t: ("+" in t, t)) for k in range(len(shapes[0][1]))]
    form = forms.pop()
    for t in each:
        form = form.replace("\0", t, 1)
    values = [None if c == "-" else "" if c == "" else shape(c)[1] for c in cells]
    if len(each) == 1:
        values = [v[0] if isinstance(v, list) else v for v in values]
    if [text(v, form) for v in values] != cells:
        return None, cells # signs or digits differ from row to row
    return form, values

def text(value, form=None):
    if value is None:
        return "-"
    if isinstance(value, str) or form is None:
        return str(value)
    return form % (tuple(value) if isinstance(value, list) else value)

def plain(x):
    if isinstance(x, list):
        return [plain(v) for v in x]
    whole = isinstance(x, float) and x == int(x) and abs(x) < 1e15 and math.copysign(1, x) == (1 if x >= 0 else -1)
    return int(x) if whole else x # -0.0 stays: a page says so

def from_markdown(source):
    lines = [l for l in source.splitlines() if l.startswith("|")]
    head, rule, body = split_row(lines[0]), split_row(lines[1]), [split_row(l) for l in lines[2:]]
    columns, values = [], []
    for k, name in enumerate(head):
        form, cells = column([row[k] for row in body])
        c = {"name": name}
        if form:
            c["format"] = form
        if rule[k].endswith(":"):
            c["align"] = "right"
        columns.append(c)
        values.append(cells)
    return {"columns": columns, "rows": [[plain(v[i]) for v in values] for i in range(len(body))]}

def to_markdown(t, rows=None):
    cols = t["columns"]
    out = ["| " + " | ".join(c["name"] for c in cols) + " |", "| " + " | ".join("---:" if c.get("align") else "---" for c in cols) + " |"]
    for r in t["rows"] if rows is None else rows:
        out.append("| " + " | ".join(text(v, c.get("format")) for v, c in zip(r, cols)) + " |")
    return "\n".join(out)

# ---- files ----
def dump(d):
    """JSON with a row and a figure a line, so that differences can be read."""
    def line(x):
        return json.dumps(x, ensure_ascii=False)
    out = []
    for k, v in d.items():
        if k == "figures":
            v = "{\n  " + ",\n  ".join(line(n) + ": " + line(f) for n, f in v.items()) + "}"
        elif k == "tables":
            v = "{\n  " + ",\n  ".join("%s: {\"columns\": %s,\n   \"rows\": [\n    %s]}" % (line(n), line(t["columns"]), ",\n    ".join(map(line, t["rows"])))
                                       for n, t in v.items()) + "}"
        else:
            v = line(v)
        out.append(" %s: %s" % (line(k), v))
    return "{\n" + ",\n".join(out) + "\n}\n"

def write(path, content):
    with open(path + ".tmp", "w", encoding="utf-8") as f:
        f.write(content)
    os.replace(path + ".tmp", path)

def commit():
    r = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True)
    return r.stdout.strip() or None

def number(word):
    try:
        return plain(float(word))
    except ValueError:
        return word

def figure(word):
    v = word.split(",")
    f = {"value": number(v[0])}
    for k, name in enumerate(("unit", "n", "seeds", "spread")):
        if len(v) > k + 1 and v[k + 1] != "":
            f[name] = v[k + 1] if name == "unit" else number(v[k + 1])
    return f

def put(stage, words, folder):
    e = os.environ.get
    d = {"stage": stage, "source": e("SOURCE") or "run", "code": e("CODE"), "config": e("CONFIG"), "data": e("DATA"), "commit": commit(),
         "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M"), "seconds": int(time.time()) - int(e("T0")) if e("T0") else None,
         "seed": number(e("SEED") or "") or None, "test_sets": (e("TEST_SETS") or "").split(), "figures": {}, "tables": {}, "texts": {}}
    for w in words:
        name, value = w.split("=", 1)
        kind, name = name.split(":", 1)
        if kind == "figure":
            d["figures"][name] = figure(value)
            continue
        with open(value, encoding="utf-8") as f:
            d[kind + "s"][name] = from_markdown(f.read()) if kind == "table" else f.read()
    write(os.path.join(folder, stage + ".json"), dump({k: v for k, v in d.items() if v is not None}))

class Figures:
    """All stages of a folder. Raises KeyError with what is missing: a page without its figure is no page."""
    def __init__(self, folder):
        self.stages = {}
        for name in sorted(os.listdir(folder)):
            if name.endswith(".json"):
                with open(os.path.join(folder, name), encoding="utf-8") as f:
                    self.stages[name[:-5]] = json.load(f)

    def stage(self, name):
        if name not in self.stages:
            raise KeyError("no stage " + name)
        return self.stages[name]

    def figure(self, stage, name):
        f = self.stage(stage)["figures"]
        if name not in f:
            raise KeyError("stage %s has no figure %s" % (stage, name))
        return f[name]

    def table(self, stage, name="main"):
        t = self.stage(stage)["tables"]
        if name not in t:
            raise KeyError("stage %s has no table %s" % (stage, name))
        return t[name]

    def lines(self, stage, name="main", **where):
        """The rows whose cells are as asked, each as a list of cells. A value that ends in * asks for what begins so."""
        t = self.table(stage, name)
        names, out = [c["name"] for c in t["columns"]], t["rows"]
        for k, v in where.items():
            if names.count(k) != 1:
                raise KeyError("%s, %s: %d columns %s" % (stage, name, names.count(k), k))
            at = names.index(k)
            out = [r for r in out if (str(r[at]).startswith(v[:-1]) if isinstance(v, str) and v.endswith("*") else r[at] == v)]
        return out

    def rows(self, stage, name="main", **where):
        """The same, each as {column: value}, without columns whose name is there twice."""
        names = [c["name"] for c in self.table(stage, name)["columns"]]
        return [{n: v for n, v in zip(names, r) if names.count(n) == 1} for r in self.lines(stage, name, **where)]

    def cell(self, stage, column, table="main", **where):
        r = self.rows(stage, table, **where)
        if len(r) != 1:
            raise KeyError("%s, %s: %d rows with %s" % (stage, table, len(r), where))
        return r[0][column]

def mean(x):
    x = list(x)
    return sum(x) / len(x)

def deviation(x):
    x = list(x)
    return math.sqrt(sum((v - mean(x)) ** 2 for v in x) / (len(x) - 1)) if len(x) > 1 else 0.0

if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] == "digest":
        print(digest(sys.argv[2:]))
    elif len(sys.argv) > 2 and sys.argv[1] == "put":
        put(sys.argv[2], sys.argv[3:], os.environ.get("FIGURES") or os.path.join(ROOT, "docs/results/figures"))
    else:
        sys.exit(__doc__)
