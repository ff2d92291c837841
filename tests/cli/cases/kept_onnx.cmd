# networks of ONNX files: each file of the unit tests, those too that are refused, as operators and as tasks
. "$T/lib.sh"
for f in "$T/randwire.onnx" "$ROOT"/tests/profiler/data/*.onnx; do
    echo "== ${f##*/}"
    plain cdmpp-profile --list-ops --network "$f" 2>&1 | cut -c 1-200 | head -n 12
    kept tasks cdmpp-profile --list-tasks --network "$f"
    kept training cdmpp-profile --list-ops --network "$f" --training
done
