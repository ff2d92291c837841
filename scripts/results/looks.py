"""The registry of test sets: docs/results/test-sets/NAME.txt.

    what: one sentence
    definition: networks, files or a seed; enough to have it again
    look | 2026-11-20 | commit or - | digest of the code or - | why | result

A look is an evaluation on the set. Who looks and then changes something has used the set a little up; a figure names the count."""
import os

FIELDS = ("date", "commit", "code", "why", "result")

def read_one(path):
    s = {"what": "", "definition": "", "looks": []}
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            line = line.strip()
            key = line.split(":", 1)[0]
            if not line or line.startswith("#"):
                continue
            if line.startswith("look |"):
                parts = [p.strip() for p in line.split("|")[1:]]
                if len(parts) != len(FIELDS):
                    raise SystemExit("%s:%d: expected look | %s" % (path, number, " | ".join(FIELDS)))
                s["looks"].append(dict(zip(FIELDS, parts)))
            elif key in ("what", "definition"):
                s[key] = line.split(":", 1)[1].strip()
            else:
                raise SystemExit("%s:%d: expected what:, definition: or look |" % (path, number))
    if not s["what"] or not s["definition"]:
        raise SystemExit("%s: expected what: and definition:" % path)
    return s

def read(folder):
    return {n[:-4]: read_one(os.path.join(folder, n)) for n in sorted(os.listdir(folder)) if n.endswith(".txt")}
