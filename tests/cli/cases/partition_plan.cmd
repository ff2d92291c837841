# plans of a network: tables, JSON, plan files, pages; what splitting may not do; plan files that are wrong
# Long: no sanitizer, one processor.
. "$T/lib.sh"
unset CDMPP_MODELS
exec 2>&1
M=$ROOT/tests/golden/model_v1.cdmpp
read_plan() { cdmpp-partition --model squeezenet-1.1 --input-size 64 -q "$@"; }
net() { cdmpp-partition --model squeezenet-1.1 --input-size 64 --cost-model "$M" --as zen5-avx2 --trials 2 -q "$@"; }
# latencies are the compiler's as much as ours: only their shape is told
shape() { sed -E 's/ +[0-9.]+ (ns|us|ms|s)\b/ T/g; s/[0-9.]+x/X/g; s/rho [0-9.]+/rho R/; s/ +/ /g'; }
first() { grep -o "\"$1\":[-0-9.e]*" "$2" | head -n 1 | cut -d : -f 2; }
net --compare --save-plan p.json --html p.html --trace t.json >1.txt; echo "exit $?"
shape <1.txt | sed '/^split\|^do not\|^all on\|^exchange:/d; /^key/,$d'
echo "--- a plan is never worse than its baselines, and not better than the ceiling"
net --compare --json >1.json
tr '{' '\n' <1.json | grep '^"name":"[^"]*","predicted_s"' | sed -E 's/.*"predicted_s":([-0-9.e]*|null),.*/\1/' |
    awk -v p="$(first predicted_s 1.json)" '$1 != "null" && $1 < p * (1 - 1e-9) { print "worse than", $1 } END { print NR, "baselines" }'
awk -v g="$(first predicted_gain 1.json)" -v c="$(first ceiling 1.json)" 'BEGIN { print (g >= 1 && g <= c * (1 + 1e-9)) ? "between 1 and the ceiling" : "gain " g " of " c }'
awk -v r="$(first rho 1.json)" -v c="$(first ceiling 1.json)" 'BEGIN { d = c / (1 + 1 / r) - 1; print (d > -0.05 && d < 0.05) ? "ceiling about 1 + 1/rho" : "rho " r " ceiling " c }'
wc -l <1.json | tr -d ' '; sed -E 's/\{"name":"cpu0","predicted.*/.../; s/:[-0-9.e]+([,}])/:N\1/g; s/"verdict":"[^"]*"/"verdict":V/' 1.json
echo "--- the same with any number of threads; a plan read back is that plan"
net --compare -j1 --save-plan q.json >2.txt; cmp 1.txt 2.txt && cmp p.json q.json && echo same
read_plan --plan p.json | cmp - 1.txt && echo same
echo "--- a slow device, no split, one dimension"
net --times ocl0=30 | grep -o 'ocl0 (zen5-avx2) 30 times as slow\|^do not split, all on cpu0'
net --no-split --save-plan n.json >/dev/null; grep -c '"dim": "[A-Z]' n.json
net --dims H --save-plan h.json >/dev/null; grep -o '"dim": "[A-Za-z0-9]*"' h.json | sort -u
echo "--- others' problems"
net --goal sum --lp a.lp | grep '^whole operators' | shape; sed -n 2p a.lp; tail -n 1 a.lp
net --stages | grep '^stages' | shape | sed 's/(.*//'
echo "--- page and trace"
grep -c 'https\?://\|src=\|@import\|url(' p.html; tail -n 1 p.html; head -c 1 t.json; echo
echo "--- a plan in the metadata of an ONNX file"
cp "$ROOT/examples/resnet18.onnx" r.onnx; digest=$(cksum <r.onnx)
onnx() { cdmpp-partition --cost-model "$M" --as zen5-avx2 --trials 1 -q "$@"; }
onnx --network r.onnx --annotate a.onnx --save-plan a.json >1.txt; echo "exit $?"
[ "$(cksum <r.onnx)" = "$digest" ] && echo untouched
cdmpp-partition -q --network r.onnx --plan a.json >2.txt; cdmpp-partition -q --network a.onnx --plan a.onnx | cmp - 2.txt && echo same
onnx --network a.onnx --annotate a.onnx --no-split >1.txt; cdmpp-partition -q --network r.onnx --plan a.onnx | cmp - 2.txt >/dev/null || echo another
cdmpp-partition -q --network r.onnx --plan r.onnx; echo "exit $?"
net --annotate b.onnx | tail -n 1; ls b.onnx 2>&1
cdmpp-partition -q --network r.onnx --plan a.json --annotate b.onnx 2>&1 | head -n 1
echo "--- plan files that are wrong"
no() { "$@"; echo "exit $?"; }
no cdmpp-partition -q --model resnet-18 --plan p.json
no read_plan --batch 2 --plan p.json 2>&1 | sed 's/operator .*/.../'
no read_plan --devices cpu0,ocl1 --plan p.json
no read_plan --plan nosuch.json
# ratios outside 0 to 1, parts that overlap, times that are no numbers, a file cut short
part=$(grep -n '"hi": [1-9]' h.json | head -n 1 | cut -d : -f 1)
sed "${part}s/\"hi\": [0-9]*/\"hi\": 1000000/" h.json >x.json; no read_plan --plan x.json
sed "${part}s/\"lo\": [0-9]*/\"lo\": -3/" h.json >x.json; no read_plan --plan x.json
sed "0,/\"predicted_s\": [0-9.e-]*/s//\"predicted_s\": nan/" h.json >x.json; no read_plan --plan x.json 2>&1 | sed 's/column [0-9]*:/column N:/' # figures before it have as many digits as they have
head -c 500 h.json >x.json; no read_plan --plan x.json 2>&1 | sed "s/expected '.'/expected C/" # figures before it, too
# an axis that the operator does not have, under any name
sed '0,/"axis": 1/s//"axis": 9/' h.json >x.json; no read_plan --plan x.json --html x.html; [ -e x.html ] && echo drawn
sed 's/"dim": "H"/"dim": "Q"/' h.json >x.json; no read_plan --plan x.json
echo "--- names of dimensions, lines of books"
no net --dims Q
no net --dims H,Q --save-plan x.json 2>&1 | tail -n 1; cmp x.json h.json && echo same
no net --schedules nosuch.json
echo nothing >nothing.json; net --schedules nothing.json >x.txt; echo "exit $?"; cmp x.txt 1.txt >/dev/null || echo "the plan all the same"
echo "--- what a plan's own times do not answer"
alone() { no cdmpp-partition -q --model squeezenet-1.1 --input-size 64 --plan n.json "$@"; }
alone >2.txt; tail -n 1 2.txt
alone --goal sum
alone --lp b.lp
alone --stages
alone --emit src
alone --run --inject slow:cpu0=8
echo "--- what a plan that is read has already, and what it may be asked beside that"
alone --as zen4
alone --cost-model "$M"
alone --trials 2
alone --times ocl0=2
alone --margin 0.1
alone --run --ignore-load
alone --goal sum --cost-model "$M" --as zen5-avx2 --trials 2 | grep -c '^whole operators'
echo "--- the first device of a plan decides the layout, also where no option names it"
cat >gpu.json <<'J'
{"cdmpp_machine": 1, "devices": [{"name": "gpu0", "kind": "model", "memory": 0, "launch_s": 5e-6, "sync_s": 1e-5}], "links": []}
J
gpu() { no cdmpp-partition -q --model squeezenet-1.1 --input-size 64 --machine gpu.json "$@"; }
gpu --cost-model "$M" --as v100 --trials 2 --compare --save-plan g.json >3.txt; gpu --plan g.json | cmp - 3.txt && echo same
echo "--- without --trials the whole has the time that cdmpp-replay gives it"
cdmpp-replay -q --json --network mobilenet-v2 --input-size 32 --cost-model "$M" --device zen5-avx2 --cache '' >r.json
cdmpp-partition -q --json --network mobilenet-v2 --input-size 32 --cost-model "$M" --as zen5-avx2 --devices cpu0 --save-plan i.json >i.txt
a=$(first latency_s r.json); b=$(first predicted_s i.txt)
# a launch takes 0.2 us
awk "BEGIN { print ($b > $a * 0.99 && $b < $a * 1.02 + 2e-5) ? \"alike\" : \"$a and $b\" }"
echo "--- with a model that knows how far off it is, the interval too"
M=$ROOT/tests/golden/model_v3.cdmpp
cdmpp-replay -q --json --network mobilenet-v2 --input-size 32 --cost-model "$M" --device zen5-avx2 --cache '' >r.json
cdmpp-partition -q --json --network mobilenet-v2 --input-size 32 --cost-model "$M" --as zen5-avx2 --devices cpu0 --save-plan i.json >i.txt
for end in low_s high_s; do
    awk -v e=$end -v a="$(first $end r.json)" -v b="$(first $end i.txt)" 'BEGIN { print (b > a * 0.97 && b < a * 1.04 + 2e-5) ? "alike" : e " " a " and " b }'
done
saved() { grep -o "\"$1\": [0-9.e-]*" i.json | head -n 1 | cut -d ' ' -f 2; }
[ "$(saved low_s)" = "$(first low_s i.txt)" ] && [ "$(saved high_s)" = "$(first high_s i.txt)" ] && echo "and in the plan's file"
read_it() { cdmpp-partition -q --network mobilenet-v2 --input-size 32 --devices cpu0 "$@"; }
read_it --plan i.json | grep -c '^90 % interval'
cdmpp-partition -q --network mobilenet-v2 --input-size 32 --cost-model "$M" --as zen5-avx2 --trials 2 --json >two.txt
awk -v l="$(first low_s two.txt)" -v p="$(first predicted_s two.txt)" -v h="$(first high_s two.txt)" 'BEGIN { print (l > 0 && l < p && p < h) ? "split over two devices: around the plan" : l " " p " " h }'
echo "--- a plan of an earlier version has none, and says so"
sed -E 's/, "(low_s|high_s|no_interval)": [^,]*//g' i.json >old.json
read_it --plan old.json --json >old.txt; grep -o '"low_s":null,"high_s":null,"no_interval":"[^"]*"' old.txt
echo "--- a plan that was made and measured on a busy machine says that when it is read"
sed -e 's/"left": null/"left": 0.4/' -e 's/"others": null/"others": 0.5/' i.json >busy.json
read_it --plan busy.json 2>&1 >/dev/null | grep -c others
cdmpp-partition --network mobilenet-v2 --input-size 32 --devices cpu0 --plan busy.json 2>&1 >/dev/null | grep others
exit 0
