#!/bin/sh
# check_replay_html.sh -- open pages of cdmpp-replay and cdmpp-partition in headless Chromium.
#
# Pages of a trained model (devices x batches), of several workers, of two devices and a link beside a network
# without a total; a plan of two devices beside its baselines; each 1280 and 480 pixels wide, light and dark: nothing on the console, nothing asked from outside, and
# what scripts/replay_check.js (partition_check.js) looks at. Pictures stay in build/replay. The last line is "replay pages: N passed, M failed".
set -u
cd "$(dirname "$0")/.."
B=${B:-build/release} W=$PWD/build/replay S=examples/zen5
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || {
    echo "no Chromium here"
    exit 1
}
rm -rf "$W" && mkdir -p "$W" || exit 1
export XDG_CACHE_HOME="$W/cache"
unset CDMPP_MODELS
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
        --virtual-time-budget=10000 --window-size="$width",1800 "$@" "file://$page" 2>"$W/log"
    rc=$?
    rm -rf "$profile"
    return $rc
}

verdict() { # NAME WIDTH FLAG...
    name=$1 width=$2
    shift 2
    { sed 's|</body></html>||' "$W/$name.html"
        printf '<script>\n'
        case $name in plan*) cat scripts/partition_check.js ;; *) cat scripts/replay_check.js ;; esac
        printf '</script></body></html>\n'; } >"$W/$name.probe.html"
    open_page "$W/$name.probe.html" "$width" --dump-dom "$@" >"$W/dom" || { echo "the browser failed"; return; }
    sed -n 's/.*data-verdict="\([^"]*\)".*/\1/p' "$W/dom" | head -n 1
}

check_page() {
    grep -q 'https\?://\|src=\|@import\|url(' "$W/$1.html" && bad "$1: something from outside" || good "$1: nothing from outside"
    for look in "1280 light 1" "480 light 1" "1280 dark 0"; do
        set -- "$1" $look
        v=$(verdict "$1" "$2" --blink-settings=preferredColorScheme="$4")
        case $v in ok*) good "$1 $2 $3: $v" ;; *) bad "$1 $2 $3: ${v:-no verdict}" ;; esac
        open_page "$W/$1.html" "$2" --blink-settings=preferredColorScheme="$4" --screenshot="$W/$1.$2.$3.png" >/dev/null
        if grep CONSOLE "$W/log"; then bad "$1 $2 $3: console"; else good "$1 $2 $3: console is silent"; fi
        [ -s "$W/$1.$2.$3.png" ] || bad "$1 $2 $3: no picture"
    done
}

"$B/cdmpp-extract" -q --restart --tasks $S/zen5.tasks.json.xz --out "$W/sample.h5" $S/measure_records || [ $? -eq 3 ] || exit 1
"$B/cdmpp-train" -q configs/quickstart.yaml --set data.files="$W/sample.h5" --set 'data.devices=[]' --set train.rounds=40 \
    --out "$W/m.cdmpp" >"$W/train.txt" || bad "training"
printf 'device,price_per_hour,currency\nzen5,0.5,USD\nzen5-avx2,0.31,USD\n' >"$W/prices.csv"
"$B/cdmpp-replay" -q --model squeezenet-1.1 --model "$W/m.cdmpp" --device zen5,zen5-avx2 --batch 1,4 --trials 32 --prices "$W/prices.csv" \
    --deadline-ms 1000 --html "$W/table.html" >"$W/table.txt" || bad "a table"
"$B/cdmpp-replay" -q --model squeezenet-1.1 --model "$W/m.cdmpp" --device zen5 --trials 32 --workers 3 --gap-us 5 --issue-us 20 \
    --what-if 'op=Conv*,scale=0.5' --html "$W/workers.html" >"$W/workers.txt" || bad "workers"
cat >"$W/two.json" <<'X'
{"schema": "cdmpp.netgraph", "version": 1, "networks": [
 {"name": "two </script> devices", "batch": 4, "measured_s": 0.005, "nodes": [
  {"name": "x", "kind": "free", "write_bytes": 1000000},
  {"name": "<b>a</b>", "op": "Conv", "kind": "given", "given_s": 1e-3, "write_bytes": 2000000, "after": ["x"], "device": "v100"},
  {"name": "b", "op": "Conv", "kind": "given", "given_s": 2e-3, "write_bytes": 2000000, "after": ["<b>a</b>"], "device": "v100"},
  {"name": "c", "op": "Pool", "kind": "given", "given_s": 1e-3, "write_bytes": 1000000, "after": ["<b>a</b>"], "device": "k80"},
  {"name": "d", "op": "Add", "kind": "given", "given_s": 1e-4, "write_bytes": 1000000, "after": ["b", "c"], "device": "v100"}]},
 {"name": "gap", "nodes": [{"name": "a", "op": "Conv", "kind": "given", "given_s": 1e-3},
  {"name": "odd", "op": "Strange", "kind": "unknown", "why": "no definition", "after": ["a"]}]}]}
X
"$B/cdmpp-replay" -q --graph "$W/two.json" --device v100 --replay-given --measured --html "$W/two.html" >"$W/two.txt" || [ $? -eq 3 ] || bad "two devices"
plan() { "$B/cdmpp-partition" -q --model squeezenet-1.1 --input-size 64 --cost-model tests/golden/model_v1.cdmpp --as zen5-avx2 --trials 2 "$@"; }
plan --compare --html "$W/plan.html" >"$W/plan.txt" || bad "a plan"
plan --times ocl0=30 --html "$W/plan_slow.html" >"$W/plan_slow.txt" || bad "a plan that splits nothing"

# The checks must be able to fail: a page without its drawing, a page that asks for something.
sed 's/function slice(/function slice() {}\nfunction unused(/' "$W/table.html" >"$W/wrong.html"
case $(verdict wrong 1280) in bad*empty*) good "an empty timeline is seen" ;; *) bad "an empty timeline is not seen" ;; esac
sed 's/<\/body>/<script>nothing.here()<\/script><\/body>/' "$W/table.html" >"$W/wrong.html"
open_page "$W/wrong.html" 1280 --dump-dom >/dev/null
grep -q CONSOLE "$W/log" && good "errors on the console are seen" || bad "errors on the console are not seen"

sed 's/"end":\[/"end":[9e9,/' "$W/plan.html" >"$W/plan_wrong.html"
case $(verdict plan_wrong 1280) in bad*) good "a wrong timeline of a plan is seen" ;; *) bad "a wrong timeline of a plan is not seen" ;; esac

for name in table workers two plan plan_slow; do check_page $name; done
echo "replay pages: $pass passed, $fail failed"
[ $fail -eq 0 ]
