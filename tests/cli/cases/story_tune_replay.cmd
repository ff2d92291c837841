# what cdmpp-tune writes cdmpp-replay and cdmpp-extract read, and the device is never "unknown"
. "$T/lib.sh"
export XDG_CACHE_HOME=$PWD/cache CC=gcc
NET=$ROOT/tests/profiler/data/baked.onnx
exec 2>&1
cdmpp-extract -q --tasks "$K" --out a.h5 "$HELD" || [ $? -eq 3 ] || exit
cdmpp-train "$ROOT/configs/quickstart.yaml" -q --set data.files=a.h5 --set train.rounds=3 --set model.members='[program]' --out m.cdmpp >/dev/null || exit
mkdir logs
cdmpp-tune --model-source onnx --model-name "$NET" --tuner random --trials 4 --budget-ms 2 --threads 1 --out logs/all.json --best logs/r.json 2>err.txt >/dev/null; echo "tuned $?"
sed -n 's/\(tune: device: \)[^ ]*, \(recognised\|which no description\).*/\1NAME/p' err.txt
grep -c 'llvm -model=[a-z0-9]' logs/r.json; grep -c unknown logs/r.json
replay() { cdmpp-replay --network "$NET" --cost-model m.cdmpp --cache '' "$@" 2>&1 | grep -v ' unlike \|^network ' | awk '$2 ~ /^zen/ { print $1, $2, $3, ($4 > 0), $NF; next } 1'; }
echo "--- as written, without a name, of another device, of both"
sed 's/ -model=[^ "]*/ -model=zen5-avx512/' logs/r.json >logs/own.json
sed 's/ -model=[^ "]*//' logs/r.json >logs/plain.json
sed 's/ -model=[^ "]*/ -model=elsewhere/' logs/r.json >logs/other.json
for f in own plain other; do replay --schedules logs/$f.json; done
replay --schedules logs/own.json --schedules logs/other.json
echo "--- logs are of the device that they name, and a time is another device's"
cp logs/plain.json .
replay --records plain.json
cdmpp-replay --network "$NET" --cost-model m.cdmpp --records logs/other.json --cache '' | sed 's/: \["[^"]*".*/: .../'
cdmpp-replay --network "$NET" --cost-model m.cdmpp --schedules logs/other.json --from-records --cache '' | sed 's/: \["[^"]*".*/: .../'
echo "--- a GPU's schedules are none"
sed 's/"llvm -model=[^"]*"/"cuda -model=v100"/' logs/r.json >logs/gpu.json
cdmpp-replay --network "$NET" --cost-model m.cdmpp --schedules logs/gpu.json --cache '' | sed 's/: \["[^"]*".*/: .../'
echo "--- resumed; older logs without a name are known too"
cp logs/all.json old.json; sed -i 's/ -model=[^ "]*//' old.json
for f in logs/all.json old.json; do
    cdmpp-tune --model-source onnx --model-name "$NET" --tuner random --trials 4 --budget-ms 2 --threads 1 --out $f -q >text; echo "exit $?"; wc -l <$f
done
echo "--- the command at the end works as it stands, of a log without all tasks and of the best ones"
export CDMPP_DEFAULT_MODEL=$PWD/m.cdmpp
rm -r logs
for best in '' '--best best.json'; do
    cdmpp-tune --network "$NET" --tuner random --trials 1 --budget-ms 2 --threads 1 --out 'a log.json' $best -q >text; echo "exit $?"
    tail -n 1 text | sed "s|$ROOT/||"
    tail -n 1 text >use.sh
    sh use.sh >out 2>&1; echo "exit $?"
    grep -c '^baked' out
done
