# plans by a model that is kept: tables, explanations, pages, plan files, sources. Figures to three digits
. "$T/lib.sh"
unset CDMPP_MODELS
exec 2>&1
export XDG_CACHE_HOME=$PWD/cache
M=$ROOT/tests/golden/model_v1.cdmpp
told() { name=$1; shift; "$@" >told.txt 2>&1; echo "status $?" >>told.txt; sed -e "s|$ROOT/||g; s/searched in [0-9.]* s/searched in T s/" told.txt | rounded >told.2; kept "$name" cat told.2; }
files() { for f; do rounded "$f" >"$f.2"; kept_files "$f.2"; done; }
part() { cdmpp-partition -q --cost-model "$M" --as zen5-avx2 "$@"; }
net() { part --network squeezenet-1.1 --input-size 64 --trials 2 "$@"; }
net --compare --explain --least-us 0 --min-us 0 --save-plan p.json --html p.html --trace t.json | rounded | head -n 60
files p.json p.html t.json
told json net --compare --min-us 0 --json
told read cdmpp-partition -q --network squeezenet-1.1 --input-size 64 --plan p.json --explain
for o in '--times ocl0=3' '--no-split' '--dims H --granules 4' '--dims I,O --margin 0.2' '--fixed-share 0.3 --cover 0.8' '--devices cpu0,cpu1,ocl0' '--goal sum' '--goal makespan' '--stages=both --min-us 0' '--stages=sequential' '--layout nchw --batch 2'; do
    # shellcheck disable=SC2086
    told "squeezenet-1.1 $o" net --compare --explain $o
done
told "an lp" net --goal makespan --lp a.lp; files a.lp
for n in resnet-18 bert-tiny yolov3-tiny mobilenet-v3-small; do told "$n" part --network $n --trials 1 --input-size 32 --compare --explain --min-us 0 --devices cpu0,ocl0; done
echo "--- rules"
cp "$ROOT/configs/offload/machine.json" "$ROOT"/configs/offload/*.rules .
for n in squeezenet-1.1 yolov3-tiny bert-tiny resnet-18; do for r in npu gpu; do kept "$n $r" cdmpp-partition -q --machine machine.json --network $n --devices cpu0,$r --rules $r.rules --list-patterns; done; done
rules() { part --machine machine.json --network squeezenet-1.1 --input-size 64 --trials 1 "$@"; }
told npu rules --devices cpu0,npu --rules npu.rules --mac --goal makespan --json --html n.html
told gpu rules --devices cpu0,gpu --rules gpu.rules --compare --explain
told emit rules --devices cpu0,npu --rules npu.rules --emit npu
told "emit a plan" rules --devices cpu0,npu --no-split --emit plan
for d in npu plan; do (cd $d && for f in *; do files "$f"; done); done
