#!/bin/sh
# check_docs.sh -- do the paths that documents and comments name exist?
#
#   1. every relative link of every page (*.md) leads to a file or folder;
#   2. every "docs/..." that a source, a script or a page names is a file;
#   3. every source that a page names in full exists;
#   4. every page of docs/ is reached by a link from some other page;
#   5. README.md has fewer than 100 lines.
#
# Called by scripts/check.sh (stage docs). The last line counts what was checked.
set -u
cd "$(dirname "$0")/.."
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
pass=0 fail=0
wrong() { echo "$1"; fail=$((fail + 1)); }

# Tracked files, and new ones that git does not ignore; without git (a source package) every file outside build.
{ git ls-files --cached --others --exclude-standard 2>/dev/null || find . -type f ! -path './build/*' | sed 's|^\./||'; } |
    sort -u | while read -r f; do [ ! -f "$f" ] || echo "$f"; done >"$tmp/files"
grep '\.md$' "$tmp/files" >"$tmp/pages"

# FILE:LINE TARGET of each link; a target is resolved from the folder of its page.
xargs awk '
    FNR == 1 { dir = FILENAME; if (!sub(/\/[^\/]*$/, "", dir)) dir = "."; code = 0 }
    /^```/ { code = !code }
    code { next }
    { t = $0
      while (match(t, /\]\([^) ]+\)/)) {
          l = substr(t, RSTART + 2, RLENGTH - 3); t = substr(t, RSTART + RLENGTH); sub(/#.*/, "", l)
          if (l != "" && l !~ /^[a-z]+:/) print FILENAME ":" FNR, dir "/" l }
      t = $0
      while (match(t, /(src|srcset)="[^"]+"/)) {
          l = substr(t, RSTART, RLENGTH - 1); t = substr(t, RSTART + RLENGTH); sub(/^[^"]*"/, "", l)
          if (l !~ /^[a-z]+:/) print FILENAME ":" FNR, dir "/" l } }' <"$tmp/pages" >"$tmp/links"
while read -r at target; do
    if [ -e "$target" ]; then pass=$((pass + 1)); else wrong "$at: no such file: $target"; fi
done <"$tmp/links"

# Paths in any text file. regress.renames holds the names of before; the texts of layout.def
# (and their table in dataset.md) stand in data sets, whose bytes stay.
grep -v '^scripts/regress.renames$\|^dataset/file/layout.def$\|^docs/reference/dataset.md$\|^build/' "$tmp/files" | xargs grep -IonE '(^|[^A-Za-z0-9_/.-]|ROOT/|\.\./)docs/[A-Za-z0-9_/-]+\.(md|svg|png|html)' /dev/null |
    sed -E 's|:[^:]*docs/| docs/|' >"$tmp/paths"
while read -r at target; do
    if [ -e "$target" ]; then pass=$((pass + 1)); else wrong "$at: no such file: $target"; fi
done <"$tmp/paths"

# Sources that pages name in full: `features/task/task.h`.
tr '\n' '\0' <"$tmp/pages" | xargs -0 grep -onE '`(base|features|dataset|profiler|learner|predictor|configs|scripts|tests|examples)/[A-Za-z0-9_/.-]+\.(c|h|def|sh|py|awk|js|txt|yaml|map|xz)`' |
    sed -E 's/:`/ /; s/`$//' >"$tmp/sources"
while read -r at target; do
    if [ -e "$target" ]; then pass=$((pass + 1)); else wrong "$at: no such file: $target"; fi
done <"$tmp/sources"

# Pages that nobody links to.
while read -r at target; do
    d=$(cd "$(dirname "$target")" 2>/dev/null && pwd) && echo "$d/$(basename "$target")"
done <"$tmp/links" | sed "s|^$PWD/||" | sort -u >"$tmp/reached"
grep '^docs/.*\.md$' "$tmp/pages" >"$tmp/docs"
while read -r f; do
    if grep -qxF "$f" "$tmp/reached"; then pass=$((pass + 1)); else wrong "$f: no page links to it"; fi
done <"$tmp/docs"

n=$(wc -l <README.md)
if [ "$n" -lt 100 ]; then pass=$((pass + 1)); else wrong "README.md: $n lines, expected fewer than 100"; fi
echo "docs: $pass passed, $fail failed"
[ $fail -eq 0 ]
