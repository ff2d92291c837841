#!/bin/sh
# readme_picture.sh [REPORT.html [OUT.svg]] -- the front page's picture, taken from a training report.
#
# Copies the plot "predicted against measured" of the test part out of the page that `make quickstart`
# writes, and puts the page's style into it, so that the file stands alone. The page draws with CSS
# variables; the light and the dark set of them come along.
set -eu
cd "$(dirname "$0")/.."
in=${1:-build/quickstart/report.html} out=${2:-docs/pictures/predicted.svg}
mkdir -p "$(dirname "$out")"
awk '
    /<style>/ { style = 1; next }
    /<\/style>/ { style = 0 }
    # variables of both modes, and the rules that begin with a plot or one of its parts
    style && /^:root|^@media screen and \(prefers-color-scheme:dark\)/ { vars = vars $0 "\n" }
    style { rules = rules $0 "\n" }
    { page = page $0 "\n" }
    END {
        at = index(page, "<svg id=\"plot-scatter-test\"")
        if (!at) { print "readme_picture: the report has no plot of a test part" >"/dev/stderr"; exit 1 }
        svg = substr(page, at); svg = substr(svg, 1, index(svg, "</svg>") + 5)
        n = split(rules, line, "}")
        for (i = 1; i <= n; i++) if (line[i] ~ /(^|[\n,}])svg[. ]/ && line[i] !~ /width:100%/) { sub(/^\n+/, "", line[i]); keep = keep line[i] "}\n" }
        sub(/<svg /, "<svg xmlns=\"http://www.w3.org/2000/svg\" font-family=\"system-ui,sans-serif\" font-size=\"13\" ", svg)
        # room for the labels at the edges, which the page lets stand out
        match(svg, /viewBox="0 0 [0-9]+ [0-9]+"/); split(substr(svg, RSTART, RLENGTH - 1), box, " ")
        sub(/viewBox="[^"]*"/, sprintf("viewBox=\"-12 -12 %d %d\"", box[3] + 32, box[4] + 24), svg)
        match(svg, />/)
        # an opaque ground: viewers differ in what is behind a picture
        printf "%s\n<style>%s%s</style>\n<rect x=\"-12\" y=\"-12\" width=\"100%%\" height=\"100%%\" style=\"fill:var(--bg)\"/>\n%s\n",
            substr(svg, 1, RSTART), vars, keep, substr(svg, RSTART + 1)
    }' "$in" >"$out.new" || { rm -f "$out.new"; exit 1; }
python3 -B scripts/svg_plain.py "$out.new"
mv "$out.new" "$out"
echo "readme_picture: $out, $(wc -c <"$out") bytes"
