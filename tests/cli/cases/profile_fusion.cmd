# rules of a back end from its times alone: a runtime that fuses by planted rules and takes a millisecond for each program is asked by a command
# Long: no sanitizer, one processor.
plant() { printf '{"schema":"cdmpp.fusion_rules/1","rules":[%s]}\n' "$1" >planted.json; }
rule() { printf '{"first":"%s","second":"%s","fused":%s}' "$1" "$2" "$3"; }
plant "$(rule Conv Relu true),$(rule Relu Add true),$(rule Add Relu true),$(rule Relu '*' false),$(rule Relu Relu false),$(rule Add Add true),$(rule Conv Add false),$(rule Add '*' true)"
cat >runtime <<'X'
kept=programs.$(cksum <"$1" | tr ' ' .) # the same network is run many times: its programs are counted once
[ -s "$kept" ] || cdmpp-profile --list-tasks --layout nchw --model-source onnx --network "$1" --fusion-rules planted.json --json 2>/dev/null | grep -o '"weight": [0-9]*' | awk '{ n += $2 } END { print n }' >"$kept"
echo "a run of $1"
echo "$(cat "$kept")e-3"
X
ask() { cdmpp-profile fusion detect --backend command --command 'sh ./runtime "$1"' --operators Conv,Relu,Add "$@"; }
ask --out rules.json; echo "status $?"
grep -o '"schema":"[^"]*","backend":"[^"]*","alpha":[0-9.]*' rules.json
echo "--- what was found does to a network what was planted"
programs() { cdmpp-profile --list-tasks --network resnet-18 --layout nchw --json "$@" 2>/dev/null | grep -o '"weight": [0-9]*' | awk '{ n += $2 } END { print n }'; }
programs; programs --fusion-rules rules.json; programs --fusion-rules planted.json
cdmpp-profile --list-tasks --network mobilenet-v1 --fusion-rules rules.json 2>&1 >/dev/null
cdmpp-profile --ops --network squeezenet-1.1 --input-size 32 --trials 1 --threads 1 --budget-ms 1 --passes 2 --cache '' --fusion-rules rules.json --json >ops.json 2>ops.err; echo "status $?"; grep -v 'others use the processors' ops.err >&2
grep -o '"ran":true' ops.json | wc -l
echo "--- a runtime that cannot, an answer that is none, a chain, a saving of less than alpha"
ask --operators Relu --command 'exit 7' --json; echo "status $?"
ask --operators Relu --command 'echo 3 ms' 2>&1 >/dev/null; echo "status $?"
ask --operators Relu,Add --chains Add+Add+Relu --repeats 4 --confidence 0.9 --alpha 0.9 | awk '{ print $1, $2, $3 }'
echo "--- bad use"
cdmpp-profile fusion; echo "status $?"
cdmpp-profile fusion find; echo "status $?"
cdmpp-profile fusion detect --operators Conv,Foo; echo "status $?"
cdmpp-profile fusion detect --backend command; echo "status $?"
cdmpp-profile fusion detect --command true; echo "status $?"
cdmpp-profile fusion detect --backend opencl --target llvm; echo "status $?"
cdmpp-profile fusion detect --alpha 2; echo "status $?"
echo '{"schema":"cdmpp.fusion_rules/1","rules":[{"first":"Conv"}]}' >bad.json
cdmpp-profile --list-tasks --network squeezenet-1.1 --fusion-rules bad.json; echo "status $?"
