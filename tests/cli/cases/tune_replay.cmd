. "$T/lib.sh"
# two tasks: 40 programs, one of which failed, and a single one
i=0
while [ $i -lt 40 ]; do
    r="[0.0$((10 + i))], 0"
    [ $i -ne 7 ] || r='[1e10], 4'
    printf '{"i": [["[\\"t\\"]", "llvm -keys=cpu -model=chip", [4, 64, 64, 0, 0, 0, 0, 0], "", 0, []], [[], [["SP", 2, 0, 512, [%d, %d], 1]]]], "r": [%s, 2, 1], "v": "v0.6"}\n' \
        $((1 << i % 8)) $((1 << i / 8)) "$r"
    i=$((i + 1))
done >a.json
sed 's/\[\\"t\\"\]/[\\"u\\"]/' a.json | head -n 1 >>a.json
echo '# a comment' >>a.json
untimed() { sed 's/[0-9.]* *$/T/'; }
for j in 1 3; do
    cdmpp-tune --replay --compare random,gridsearch --at 1,10,39 --seeds 3 --trials 39 --curves $j.csv --svg $j.svg --opbench $j -j $j a.json >$j.out || echo failed
    cut -d, -f1-9 $j.csv >$j.cut
done
untimed <1.out
untimed <1.out >1.t; untimed <3.out | cmp - 1.t
cmp 1.cut 3.cut && diff -r 1 3 && wc -l <1.cut && find 1 -type f | sort
grep -c '</svg>' 1.svg
echo 'no record' >>a.json
cdmpp-tune --replay --at 39 --trials 39 --json --min 1 a.json | sed 's/"search_s":[0-9.e-]*/"search_s":T/'
echo "--- refused"
cdmpp-tune --replay; echo "exit $?"
cdmpp-tune --replay --out x.json a.json; echo "exit $?"
cdmpp-tune --replay --compare random,cdmpp a.json; echo "exit $?"
cdmpp-tune --replay --at 10,10 a.json; echo "exit $?"
cdmpp-tune --replay --min 100 a.json; echo "exit $?"
# a model of a time when models did not say what they were trained on
cdmpp-tune --replay --model "$ROOT/tests/golden/model_v1.cdmpp" --tasks "$K" a.json; echo "exit $?"
