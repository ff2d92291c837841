"""typed -- sentences of hand-written pages that type a number with a unit.

A measured result belongs into a figures file, and a page cites the computed page that shows it. So each sentence, and each row of a table, of
docs/guide, docs/reference and docs/internals that has a number with a unit must stand in scripts/results/typed.txt:

    definition FILE: SENTENCE    an option, a default, a format, a rule, a law, an example that is made up

    typed.py      the sentences that are not in the list, as lines for it"""
import os, re, sys

NUMBER = re.compile(r"(?<![\w.`/])\d[\d,]*(?:\.\d+)?\s?(?:%|[unmµ]?s(?![\w/])|x(?![\w.*])(?! \d)|times(?!\w))")
FOLDERS = ("docs/guide", "docs/reference", "docs/internals")
COMPUTED = ("docs/internals/mutation.md",)
LIST = "scripts/results/typed.txt"

def blocks(text):
    """Paragraphs, points of lists and rows of tables, each as one line, without code."""
    text = re.sub(r"```.*?```|<!--.*?-->", "", text, flags=re.S)
    block = []
    for line in text.splitlines() + [""]:
        starts = re.match(r"\s*([*-] |\d+\. |\||#|>)", line) or not line.strip() or line.startswith("    ") and not block
        if starts and block:
            yield " ".join(" ".join(block).split())
            block = []
        if line.strip() and not (line.startswith("    ") and not block and not re.match(r"\s*([*-] |\d+\. )", line)):
            block.append(line)

def sentences(text):
    for b in blocks(text):
        for s in [b] if b.startswith("|") else re.split(r"(?<=[.:;!?])\s+(?=[A-Z*`\"(\[])", b):
            if NUMBER.search(re.sub(r"`[^`]*`|\]\([^)]*\)", "`", s)):
                yield s

def pages(root):
    for d in FOLDERS:
        for name in sorted(os.listdir(os.path.join(root, d))):
            path = "%s/%s" % (d, name)
            if name.endswith(".md") and path not in COMPUTED:
                with open(os.path.join(root, path), encoding="utf-8") as f:
                    yield path, f.read()

def listed(root):
    """The (file, sentence) pairs of the list."""
    out = set()
    with open(os.path.join(root, LIST), encoding="utf-8") as f:
        for line in f:
            m = re.match(r"definition\s+(\S+): (.*)", line)
            if m:
                out.add((m[1], m[2].strip()))
    return out

def check(root):
    """What is wrong, a line each, and how many sentences have a number."""
    known, found, wrong = listed(root), set(), []
    for path, text in pages(root):
        for s in sentences(text):
            found.add((path, s))
            if (path, s) not in known:
                wrong.append("%s: a typed number: cite a computed page, or say in %s what it defines: %s" % (path, LIST, s))
    wrong += ["%s: %s does not say this any more: %s" % (LIST, *k) for k in known if k not in found]
    return wrong, len(found)

if __name__ == "__main__":
    ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    KNOWN = listed(ROOT) if os.path.exists(os.path.join(ROOT, LIST)) else set()
    for path, text in pages(ROOT):
        for s in sentences(text):
            if (path, s) not in KNOWN:
                print("definition %s: %s" % (path, s))
    sys.exit(0)
