# a model corrected for this machine: measured once, killed, continued, found by itself; what goes wrong
# Long: no sanitizer.
. "$T/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
unset CDMPP_DEFAULT_MODEL
exec 2>&1
small_model || exit
args="--seconds 3600 --trials 18 --budget-ms 1 --timeout 100 --build-timeout 100 --network squeezenet-1.1 --input-size 32 --cost-model m.cdmpp --device zen5-avx512 --run-networks none"
cal() { cdmpp-tune calibrate $args "$@"; }
told() { grep -o '"\(measured_now\|repeated_now\|programs\|measured\|pairs\|unusable\|out\|records\)":[^,}]*' | tr '\n' ' '; echo; }
here() { sed -E "s|$ROOT/||g; s|[^ \"]*/user/cdmpp/models/||g; s/cpu-[a-z0-9-]*/cpu-NAME/g; s/\([^()]*(\([^()]*\)[^()]*)*\)/(CPU)/; s/(corrected by) [0-9]+/\1 N/; s/ [0-9.]+ (us|ms|s)/ T/g; s/(measured noise) [0-9]+/\1 N/"; }
cal -q --json --force | told | here
here=$(ls "$XDG_DATA_HOME"/cdmpp/models/cpu-*.cdmpp) log=${here%.cdmpp}.records.json
echo "--- killed, and continued"
mv "$log" whole.json; mv "$here" whole.cdmpp
cdmpp-tune calibrate $args -q --force >/dev/null & pid=$!
while [ ! -s "$log" ] && kill -0 $pid; do sleep 0.1; done
kill -9 $pid; wait $pid 2>/dev/null
ls "$here" 2>/dev/null
cal -q --force >/dev/null; echo "exit $?"
key() { sed 's/, "r": .*//' "$1" | sort; }
key "$log" >a; key whole.json >b; cmp a b && echo "the same programs"
cal -q --json --force | told | here
echo "--- found by itself, in any folder"
mkdir elsewhere; cd elsewhere
cdmpp-predict --info --json 2>/dev/null | grep -o '"here":{"device":"[^"]*"' | here
cdmpp-predict --info --json 2>&1 >/dev/null | here
cdmpp-predict --info 2>/dev/null | grep '^corrected for\|^measured noise' | here | sed 's/noise  *[0-9]*/noise N/; s/^\(corrected for\) .*/\1 NAME/'
cdmpp-replay --network squeezenet-1.1 --input-size 32 --trials 2 --device zen5-avx512 2>&1 >/dev/null | grep 'cost model' | here
cdmpp-partition --network squeezenet-1.1 --input-size 32 --devices cpu0 --trials 2 2>&1 >/dev/null | grep 'cost model' | cut -d ';' -f 1 | here
cdmpp-tune --network squeezenet-1.1 --input-size 32 --task "#0" --threads 1 --trials 1 --budget-ms 1 --no-check --out t.json 2>&1 >/dev/null | grep 'cost model' | cut -d ';' -f 1 | here
cd ..
CDMPP_DEFAULT_MODEL=$PWD/m.cdmpp cdmpp-predict --info --json 2>&1 >/dev/null | sed "s|$PWD|HERE|"
echo "--- not read from the current folder"
cp "$here" here.cdmpp; mv "$here" own.cdmpp
cdmpp-predict --info --json 2>&1 >/dev/null | grep -o 'here.cdmpp of this folder is no longer read'
rm here.cdmpp
echo "--- of another machine of this name, and one that does not say which it is of"
forged() { LC_ALL=C sed "$1" own.cdmpp >f; head -c -64 f >body; { cat body; printf %s "$(sha256sum <body | cut -d ' ' -f 1)"; } >"$here"; cdmpp-predict --info --json 2>&1 >/dev/null | grep -o 'cdmpp \(is of another processor\|does not say which machine it is of\)'; }
forged 's/\("machine":{[^}]*"family":\)[0-9]/\19/'
forged 's/\("machine":{[^}]*"maker":"\)[^"]/\1X/'
forged 's/"machine":/"Machine":/'
mv own.cdmpp "$here"
echo "--- not twice"
cal --cost-model "$here" -q 2>&1 | here
cdmpp-predict --cost-model "$here" --export xgboost --member 0 --out e.ubj 2>&1 | sed "s/correction for .*/correction for CPU/"
echo "--- too few"
cal -q --trials 3 --out few.cdmpp >few.txt 2>&1; echo "exit $?"; sed "s/[0-9] of them/N of them/" few.txt # which one depends on the vectors of the processor
ls few.cdmpp few.records.json 2>/dev/null
echo "--- options"
cdmpp-tune calibrate here; echo "exit $?"
cdmpp-tune calibrate --target rocm; echo "exit $?"
cdmpp-tune calibrate --seconds 3601; echo "exit $?"
cdmpp-tune calibrate --tasks x --network y; echo "exit $?"
cdmpp-tune calibrate --compare random,ga; echo "exit $?"
cdmpp-tune calibrate --run-networks lstm --run-networks gru; echo "exit $?"
cdmpp-tune --tasks x --out o --force; echo "exit $?"
cdmpp-tune --tasks x --out o --devices z; echo "exit $?"
cdmpp-tune calibrate --records x --out o; echo "exit $?"
cdmpp-tune calibrate --records x --tasks y; echo "exit $?"
cdmpp-tune calibrate --records x --tasks y --out o --seconds 9; echo "exit $?"
echo "--- logs in the place of measurements"
sed 's/-model=[a-z0-9-]*/-model=board/' "$log" >board.json
cdmpp-profile --list-tasks --network squeezenet-1.1 --input-size 32 --target 'llvm -num-cores=1' --out-tasks tasks.json >/dev/null
cdmpp-tune calibrate -q --cost-model m.cdmpp --device zen5-avx512 --tasks tasks.json --records board.json --out board.cdmpp --json --force | told; ls board.cdmpp
cdmpp-tune calibrate -q --cost-model m.cdmpp --tasks tasks.json --records board.json --out b.cdmpp; echo "exit $?"
cdmpp-tune calibrate -q --cost-model m.cdmpp --tasks tasks.json --records board.json --out b.cdmpp --devices missing.yaml; echo "exit $?"
echo "--- with a description of its own a board needs no --device, and has analytic times of its own"
sed -n '/^- name: zen4/,/^$/p' "$ROOT/configs/devices.yaml" >own.yaml; sed '/^ *aliases:/d; s/zen4/board/; s/clock_mhz: .*/clock_mhz: 1500/' own.yaml >board.yaml
cat "$ROOT/configs/devices.yaml" board.yaml >both.yaml
cdmpp-train "$ROOT/configs/own.yaml" -q --set data.files=a.h5 --set train.rounds=10 --set model.folds=1 --set model.members='[program]' --set train.facts=prior --out f.cdmpp >/dev/null || exit
cdmpp-tune calibrate -q --cost-model f.cdmpp --tasks tasks.json --records board.json --out b.cdmpp --devices both.yaml --json --force | told
echo "--- what is not used of logs, and a description that does not count, are told"
given() { cdmpp-tune calibrate --cost-model f.cdmpp --device zen5-avx512 --tasks tasks.json --out g.cdmpp --force --json "$@" 2>&1 >/dev/null | grep 'not used\|stand in\|error' | sed 's/: ENOTASK.*//; s/[0-9]* programs are measured, [0-9]* of them/N programs are measured, N of them/; s/[0-9]* programs of [0-9]* tasks/N programs of N tasks/'; }
{ cat board.json; echo '{"i": [["x'; } >cut.json
given --records cut.json --devices both.yaml
given --records board.json --devices own.yaml
sed '/bandwidth_gb_s/d' board.yaml | cat own.yaml - >little.yaml; given --records board.json --devices little.yaml
head -n 4 board.json >short.json; given --records short.json --devices both.yaml
cdmpp-predict --cost-model b.cdmpp --info --json | grep -o '"here":{.*' | grep -o '"\(device\|name\)":"[^"]*"\|"clock_mhz":[0-9]*'
cdmpp-predict --cost-model board.cdmpp --tasks tasks.json -q board.json | wc -l
cdmpp-predict --cost-model m.cdmpp --tasks tasks.json -q board.json >/dev/null; echo "exit $?"
cdmpp-tune calibrate -q --cost-model missing.cdmpp; echo "exit $?"
echo "--- answers of another device are told once"
other() { cdmpp-predict --cost-model board.cdmpp --tasks tasks.json "$@" 2>&1 >/dev/null | grep 'corrects times' | sed 's/[0-9]\{1,\} of [0-9]\{1,\}/N of N/'; }
other --device zen5-avx512 board.json
other board.json
sed 's/-model=board/-model=zen5-avx2/' board.json >avx2.json
other board.json avx2.json
