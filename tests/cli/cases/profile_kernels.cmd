# kernels of a network measured where they are predicted badly; a kill -9 loses nothing; times differ, so only what they must obey is shown
# Long: no sanitizer, one processor.
export XDG_CACHE_HOME=$PWD/cache
net="--network squeezenet-1.1 --input-size 32 --trials 1 --budget-ms 1"
sample="cdmpp-profile kernels sample $net --out kernels.jsonl --first 8"
$sample --limit 1000 >killed.txt 2>&1 &
pid=$!
until [ "$(cat kernels.jsonl 2>/dev/null | wc -l)" -ge 6 ]; do kill -0 $pid 2>/dev/null || break; sleep 0.1; done
kill -9 $pid 2>/dev/null
wait $pid 2>/dev/null; echo "killed: $?"
cut -d'"' -f4 kernels.jsonl | head -n 6
head -n 6 kernels.jsonl >six; printf '{"type":"Conv+Re' >>kernels.jsonl
n=$(($(wc -l <kernels.jsonl) + 4))
$sample --limit $n --quiet >out.txt; echo "status $?"
sed 's/^[0-9]* samples, [0-9]* rounds/N samples, R rounds/; s/[0-9]* of [0-9]* within/K of N within/; s/([0-9]* without/(U without/; s/, mean error .*//' out.txt
head -n 6 kernels.jsonl | cmp - six
[ "$(wc -l <kernels.jsonl)" -ge "$n" ] && echo "it went on"
cut -d: -f1-3 kernels.jsonl | sort | uniq -d | wc -l
echo "--- the same file is enough; nothing is measured"
$sample --limit $n --json --quiet | sed 's/.*"end":"\([a-z]*\)".*/ended by: \1/'
echo "--- few samples: nothing has an answer, so there is no error"
cdmpp-profile kernels sample $net --out few.jsonl --first 3 --limit 3 2>&1 | grep -o 'without an answer.*\|nan'
echo "--- a network by the sum of its kernels; a type without samples is no answer"
law() { awk 'BEGIN { for (i = 0; i < 300; i++) { f = 1000 * 1.03 ^ i; r = 500 * 1.02 ^ (i * 7 % 300); printf "{\"type\":\"Conv+Relu\",\"x\":[%d,%d,%d,%d,1,8,8,8,8,1,1,1,3],\"seconds\":%.9g,\"draw\":%d,\"root\":%d,\"round\":0,\"held\":false}\n", f, r, r, r, f * 1e-10 + r * 3e-10, i, i } }'; }
law >law.jsonl
predict() { cdmpp-profile kernels predict $net "$@"; }
predict law.jsonl; echo "status $?"
predict --json law.jsonl 2>/dev/null | grep -o '"predicted_s":[a-z]*'
for t in Conv+Relu LayoutTransform MaxPool Concat GlobalAveragePool; do sed "s/Conv+Relu/$t/" law.jsonl; done >all.jsonl
predict all.jsonl 2>&1 | awk 'NR == 2 { print $1, ($2 > 0 ? "has a time" : "has none") }'
predict --measure all.jsonl | awk 'NR > 1 { print $1, NF }'
echo '{"schema":"cdmpp.fusion_rules/1","rules":[{"first":"Conv","second":"Relu","fused":true}]}' >rules.json
predict --fusion-rules rules.json all.jsonl | awk 'NR == 2 { print $1, ($2 > 0 ? "has a time" : "has none") }'
echo '{"schema":"cdmpp.fusion_rules/1","rules":[]}' >rules.json
predict --fusion-rules rules.json all.jsonl | awk 'NR == 2 { print $1, ($2 > 0 ? "has a time" : "has none") }'
echo "--- bad use"
predict; echo "status $?"
predict nosuch.jsonl; echo "status $?"
sed '3s/"seconds":[^,]*/"seconds":-1/' law.jsonl >bad.jsonl
predict bad.jsonl; echo "status $?"
cdmpp-profile kernels; echo "status $?"
cdmpp-profile kernels sample --out x; echo "status $?"
cdmpp-profile kernels sample --network resnet-18; echo "status $?"
cdmpp-profile kernels sample --network resnet-18,nosuchnet --out x; echo "status $?"
cdmpp-profile kernels sample --network resnet-18 --target cuda --out x; echo "status $?"
