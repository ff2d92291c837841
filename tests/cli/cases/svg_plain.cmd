# viewers without CSS variables draw the pictures of the pages too: a plain colour comes before each variable
for f in "$ROOT"/docs/pictures/*.svg "$ROOT"/docs/results/*.svg; do
    cp "$f" a.svg; python3 -B "$ROOT/scripts/svg_plain.py" a.svg; cmp -s a.svg "$f" || echo "run scripts/svg_plain.py docs/${f##*/docs/}"
done
printf '<svg><style>:root{--a:#123}\n.x{fill:var(--a);stroke:var(--b)}</style><path style="fill:#123;fill:var(--a)"/></svg>\n' >b.svg
python3 -B "$ROOT/scripts/svg_plain.py" b.svg; cat b.svg
