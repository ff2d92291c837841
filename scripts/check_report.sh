#!/bin/sh
# check_report.sh -- train on the carried sample, open the report in headless Chromium.
#
# Also opens made-up pages (with intervals; few and many programs), each 1280 and 480
# pixels wide, light and dark: no console error, every plot is there and has something
# in it, no label covers another or leaves the window (report_check.js). Pictures to
# look at stay in build/report. The last line is "report: N passed, M failed".
set -u
cd "$(dirname "$0")/.."
B=${B:-build/release} W=$PWD/build/report S=examples/zen5
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || {
    echo "no Chromium here"
    exit 1
}
rm -rf "$W" && mkdir -p "$W" || exit 1
pass=0 fail=0
good() { pass=$((pass + 1)); echo "ok   $1"; }
bad() { fail=$((fail + 1)); echo "FAIL $1"; }

# PAGE WIDTH FLAG...: run the browser with a fresh profile; messages go to $W/log
open_page() {
    page=$1 width=$2
    shift 2
    profile=$(mktemp -d)
    timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
        --disable-component-update --disable-sync --hide-scrollbars --user-data-dir="$profile" --enable-logging=stderr --v=0 \
        --virtual-time-budget=10000 --window-size="$width",4200 "$@" "file://$page" 2>"$W/log"
    rc=$?
    rm -rf "$profile"
    return $rc
}

# NAME ID...: a page at both widths
check_page() {
    name=$1
    shift
    { sed "s|<html lang=\"en\">|<html lang=\"en\" data-want=\"$*\">|; s|</body></html>||" "$W/$name.html"
        printf '<script>\n'
        cat scripts/report_check.js
        printf '</script></body></html>\n'; } >"$W/$name.probe.html"
    for width in 1280 480; do
        open_page "$W/$name.probe.html" $width --dump-dom >"$W/dom" || { bad "$name $width: the browser failed"; tail -n 3 "$W/log"; continue; }
        verdict=$(sed -n 's/.*data-verdict="\([^"]*\)".*/\1/p' "$W/dom" | head -n 1)
        case $verdict in ok*) good "$name $width: $verdict" ;; *) bad "$name $width: ${verdict:-no verdict}" ;; esac
        open_page "$W/$name.html" $width --screenshot="$W/$name.$width.png" >/dev/null
        if grep CONSOLE "$W/log"; then bad "$name $width: console"; else good "$name $width: console is silent"; fi
        [ -s "$W/$name.$width.png" ] || bad "$name $width: no picture"
    done
    open_page "$W/$name.html" 1280 --blink-settings=preferredColorScheme=0 --screenshot="$W/$name.dark.png" >/dev/null
}

# The checks must be able to fail: an error on the console, labels over each other.
echo '<!doctype html><script>console.error("seen")</script><script>nothing.here()</script>' >"$W/wrong.html"
open_page "$W/wrong.html" 1280 --dump-dom >/dev/null
[ "$(grep -c CONSOLE "$W/log")" -ge 2 ] && good "console errors are seen" || bad "console errors are not seen"
{ echo '<!doctype html><html lang="en"><svg class="plot" id="p" width="300" height="200"><text x="9" y="50">one</text><text x="12" y="50">two</text></svg><script>'
    cat scripts/report_check.js
    echo '</script></html>'; } >"$W/wrong.html"
open_page "$W/wrong.html" 1280 --dump-dom >"$W/dom"
grep -q "nothing drawn.*covers" "$W/dom" && good "bad layout is seen" || bad "bad layout is not seen"

"$B/cdmpp-extract" -q --restart --tasks $S/zen5.tasks.json.xz --out "$W/sample.h5" $S/measure_records || [ $? -eq 3 ] || exit 1
for kind in record task; do
    "$B/cdmpp-train" -q configs/quickstart.yaml --set data.files="$W/sample.h5" --set train.rounds=80 --set split.kind=$kind \
        --out "$W/$kind.cdmpp" --report "$W/$kind.html" >"$W/$kind.txt" || bad "$kind: training"
    check_page $kind plot-scatter-test plot-scatter-validation plot-scatter-train plot-cdf plot-decade plot-task plot-curves \
        table-parts table-task-worst table-network table-decade table-device
done
CDMPP_PAGES=$W "$B/tests/learner/report/units" test_trainreport >"$W/log" 2>&1 || bad "made-up pages"
for name in made-many made-few made-all; do
    check_page $name plot-scatter-test plot-cdf plot-decade plot-task plot-coverage plot-curves table-parts
done
echo "report: $pass passed, $fail failed"
[ $fail -eq 0 ]
