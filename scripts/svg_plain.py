#!/usr/bin/env python3
"""svg_plain.py FILE.svg... -- a plain colour before each that is a CSS variable: "fill:var(--mut)" becomes "fill:#56616c;fill:var(--mut)".

Viewers without CSS variables (librsvg) draw such a fill black, and such a line not at all. The colours are those of the first :root, for light pages."""
import re
import sys

DECLARATION = re.compile(r"(?<![\w-])([a-z-]+):var\(--(\w+)\)")

def plain(text):
    root = re.search(r":root\{([^}]*)\}", text)
    colour = dict(re.findall(r"--(\w+):([^;}]+)", root.group(1))) if root else {}
    def both(m):
        first = "%s:%s;" % (m.group(1), colour.get(m.group(2), ""))
        return m.group(0) if m.group(2) not in colour or text[:m.start()].endswith(first) else first + m.group(0)
    return DECLARATION.sub(both, text)

if __name__ == "__main__":
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as f:
            old = f.read()
        new = plain(old)
        if new != old:
            with open(path, "w", encoding="utf-8") as f:
                f.write(new)
