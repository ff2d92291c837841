# profiles of ONNX Runtime, trtexec and PyTorch's autograd profiler in a store; what adds nothing is no success; a form that is not read is named
. "$T/lib.sh"
E=$ROOT/examples/traces
P="cdmpp-profile store"
$P import --store s.db --quiet "$E/onnxruntime.json" "$E/autograd.json"; echo "status $?"
$P import --store s.db --quiet --device a10 "$E/trtexec_profile.json" "$E/trtexec_times.json"; echo "status $?"
$P export --store s.db --as csv | cut -d, -f2-5,7- | sed 's/,[^,]*$//; s/"[^"]*examples/"examples/g' | cut -c1-170
$P import --store s.db "$E/autograd.json" 2>&1 | grep -v ' lines in '; echo "status $?"
say() { "$@" >o.txt 2>&1; st=$?; sed "s|$PWD/||g; s|$ROOT/||g" o.txt; echo "status $st"; }
echo '[]' >none.json
echo '{"traceEvents": [{"ph": "X", "cat": "Op", "name": "Conv2D", "pid": 1, "tid": 1, "ts": 1, "dur": 2}]}' >tf.json
echo '[{"name": "aten::mm", "ph": "X", "ts": 1, "dur": 0, "tid": 0, "pid": "CUDA functions", "args": {}}]' >zero.json
echo '[{"name": "aten::mm", "ph": "X", "ts": 1, "tid": 0, "pid": "CUDA functions", "args": {}}]' >bad.json
for f in none tf zero bad; do say $P import --store n.db --quiet $f.json; done
say $P import --store n.db --quiet "$E/trtexec_layers.json"
say cdmpp-profile trace tf.json
say cdmpp-profile trace "$E/trtexec_layers.json"
# nothing to do is no success anywhere
: >empty.json
say cdmpp-predict --quiet --model "$ROOT/tests/golden/model_v1.cdmpp" --tasks "$K" empty.json
say cdmpp-profile records --tasks "$K" --dry-run empty.json
