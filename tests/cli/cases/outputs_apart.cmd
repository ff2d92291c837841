# what is written is none of what is read: under another name, through a link, and no device is replaced
. "$T/lib.sh"
unset CDMPP_MODELS
exec 2>&1
xz -dc "$K" >t.json; xz -dcf "$(find "$LOGS" -type f | sort | head -n 1)" | head -n 40 >log.json; ln -s t.json link.json; cp "$ROOT/examples/resnet18.onnx" r.onnx; echo '{}' >p.json
sums() { cksum t.json log.json r.onnx p.json; }
sums >before
no() { "$@" 2>&1 | grep -v '^Try'; }
no cdmpp-extract -q --tasks t.json --out log.json log.json
no cdmpp-extract -q --tasks link.json --out t.json log.json
no cdmpp-extract -q --merge a.h5 a.h5 b.h5
no cdmpp-profile draw --tasks t.json --trials 1 --out t.json
no cdmpp-profile draw --tasks t.json --trials 1 --out x.json --stats x.json
no cdmpp-tune --tasks t.json --trials 1 --out o.json --best t.json
no cdmpp-tune --tasks t.json --trials 1 --out ./link.json
no cdmpp-partition --network r.onnx --save-plan r.onnx
no cdmpp-partition --network r.onnx --plan p.json --html p.json
no cdmpp-replay --network r.onnx --save-schedules r.onnx
no cdmpp-replay --graph p.json --tasks t.json --save-graph t.json
cdmpp-extract -q --tasks t.json --out d.h5 log.json; s=$(cksum <d.h5)
no cdmpp-train "$ROOT/configs/quickstart.yaml" -q --set data.files=d.h5 --out d.h5
no cdmpp-train "$ROOT/configs/quickstart.yaml" -q --set 'data.files=[d.h5]' --out ./d.h5
[ "$(cksum <d.h5)" = "$s" ] && sums | cmp - before && echo untouched
echo "--- neither a device nor a folder becomes a file"
mkdir folder; mkfifo pipe
for p in folder pipe /dev/null; do cdmpp-extract -q --tasks t.json --out $p log.json; echo "exit $?"; done
[ -d folder ] && [ -p pipe ] && [ -c /dev/null ] && echo there
