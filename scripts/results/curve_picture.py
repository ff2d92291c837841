"""curve_picture -- tables of stage curves24 as pictures: a panel for each figure, a line for each model, readable in light and dark.

A picture holds no figure that is in no table: scripts/results/render.py draws it from the figures file, and scripts/check_figures.py compares it with that."""
import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from svg_plain import plain

PANELS = (("MAPE %", "MAPE, %, logarithmic"), ("median %", "median error, %, logarithmic"), ("Spearman", "Spearman in a task"), ("top-5", "top-5"))
WIDTH, HEIGHT, LEFT, TOP, ACROSS, DOWN = 360, 240, 48, 34, 288, 158 # of a panel, and its plot inside
STYLE = plain("""<style>:root{--bg:#fff;--fg:#1a1f24;--mut:#56616c;--line:#dde2e7;--c0:#0067ab;--c1:#c2570c;color-scheme:light dark}
@media screen and (prefers-color-scheme:dark){:root{--bg:#14181c;--fg:#e3e8ec;--mut:#9aa6b1;--line:#2e363e;--c0:#5ab4ec;--c1:#f0913a}}
text{fill:var(--mut)}
.t{fill:var(--fg)}
.bg{fill:var(--bg)}
path{fill:none}
.grid{stroke:var(--line)}
.axis{stroke:var(--mut)}
.m0{stroke:var(--c0);stroke-width:2}
.m1{stroke:var(--c1);stroke-width:2;stroke-dasharray:6 4}
.d0{fill:var(--c0)}
.d1{fill:var(--c1)}
</style>""")

def step_of(span):
    """A step of 1, 2 or 5 times a power of ten: three to six of them in the span."""
    power = 10 ** math.floor(math.log10(span / 3))
    return max(k * power for k in (1, 2, 5) if k * power <= span / 3)

def ticks(values, log):
    """Logarithmic: 1, 2 and 5 times powers of ten around the values."""
    lo, hi = min(values), max(values)
    if log:
        all_ = [k * 10 ** p for p in range(-3, 6) for k in (1, 2, 5)]
        return [v for v in all_ if max(w for w in all_ if w <= lo) <= v <= min(w for w in all_ if w >= hi and w > lo)]
    step = step_of(hi - lo) if hi > lo else 1
    first, last = math.floor(lo / step), math.ceil(hi / step)
    return [k * step for k in range(first, max(last, first + 1) + 1)]

def word(x):
    return "{:,}".format(int(x)) if x >= 1 and x == int(x) else ("%.3f" % x).rstrip("0").rstrip(".")

def panel(at, rows, by, name, title, models):
    """One figure by `by`, logarithmic."""
    x0, y0 = WIDTH * (at % 2) + LEFT, HEIGHT * (at // 2) + TOP + 26
    log = title.endswith("logarithmic")
    xs, ys = [math.log10(r[by]) for r in rows], ticks([r[name] for r in rows], log)
    lo, hi, of = min(xs), max(xs), math.log10 if log else float
    x = lambda v: x0 + ACROSS * (math.log10(v) - lo) / (hi - lo or 1)
    y = lambda v: y0 + DOWN * (1 - (of(v) - of(ys[0])) / (of(ys[-1]) - of(ys[0])))
    out = ['<text class="t" x="%d" y="%d">%s</text>' % (x0, y0 - 10, title)]
    for v in ys:
        out.append('<path class="grid" d="M%d %.1fh%d"/><text x="%d" y="%.1f" text-anchor="end">%s</text>' % (x0, y(v), ACROSS, x0 - 6, y(v) + 4, word(v)))
    shown = -math.inf
    for v in sorted({r[by] for r in rows}):
        out.append('<path class="axis" d="M%.1f %dv5"/>' % (x(v), y0 + DOWN))
        if x(v) - shown > 44: # two labels beside each other
            out.append('<text x="%.1f" y="%d" text-anchor="middle">%s</text>' % (x(v), y0 + DOWN + 19, word(v)))
            shown = x(v)
    out.append('<path class="axis" d="M%d %dh%d"/>' % (x0, y0 + DOWN, ACROSS))
    for k, model in enumerate(models):
        points = [(x(r[by]), y(r[name])) for r in rows if r["model"] == model]
        out.append('<path class="m%d" d="M%s"/>' % (k, "L".join("%.1f %.1f" % p for p in points)))
        out += ['<circle class="d%d" cx="%.1f" cy="%.1f" r="3.2"/>' % (k, *p) for p in points]
    return out

def picture(rows, by, title):
    """SVG of rows {column: value}; by: the column of the horizontal axis."""
    models = list(dict.fromkeys(r["model"] for r in rows))
    width, height = 2 * WIDTH + 16, 2 * HEIGHT + TOP + 8
    out = ['<svg xmlns="http://www.w3.org/2000/svg" font-family="system-ui,sans-serif" font-size="12" viewBox="0 0 %d %d" role="img" aria-labelledby="t">' % (width, height),
           '<title id="t">%s</title>' % title, STYLE, '<rect class="bg" width="%d" height="%d"/>' % (width, height)]
    for k, model in enumerate(models):
        x = LEFT + 230 * k
        out.append('<path class="m%d" d="M%d 18h26"/><circle class="d%d" cx="%d" cy="18" r="3.2"/><text class="t" x="%d" y="22">%s</text>' % (k, x, k, x + 13, x + 34, model))
    for at, (name, of) in enumerate(PANELS):
        out += panel(at, rows, by, name, of, models)
    out.append('<text class="t" x="%d" y="%d" text-anchor="middle">%s</text>' % (width // 2, height - 8, "training " + by + ", logarithmic"))
    return "\n".join(out + ["</svg>"]) + "\n"
