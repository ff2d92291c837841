# requests on a pipe: the answers of the batch mode, errors in their place, and how a stream ends
. "$T/lib.sh"
s="cdmpp-predict --model $ROOT/tests/golden/model_v1.cdmpp --tasks $K --stream --device zen5-avx512"
echo '{"cmd":"hello","id":"h"}' | $s | sed 's/"sha256:[0-9a-f]*"/"sha256:H"/'
head -n 40 "$HELD" >a.json
$s <a.json | sed 's/.*"latency_s":\([^,]*\),.*/\1/' >one.txt
cdmpp-predict --model "$ROOT/tests/golden/model_v1.cdmpp" --tasks "$K" --device zen5-avx512 a.json | sed 's/.*"latency_s":\([^,]*\)}/\1/' | cmp - one.txt && wc -l <one.txt
# same bytes for any batch, number of threads, cache
cat a.json a.json >b.json
$s --batch 1 --cache 0 <b.json >b1; $s --batch 7 --cache 5 -j 2 <b.json >b2; $s --max-delay-ms 0 -v <b.json >b3; cmp b1 b2 && cmp b1 b3 && echo same
# what is wrong with a line is said in its place; half a line at the end is answered, too
{ head -n 1 a.json; echo '{"id":"w","rows":[[1,2]]}'; echo; echo 'x'; echo '{"id":4,"device":"t4","rows":[]}'; printf '{"id":5,"rows":[[1'; } | $s --json --max-delay-ms 60000; echo "status $?"
head -n 1 a.json | tr -d '\n' | $s; echo "status $?"
: | $s; echo "status $?"
# a table; frames: no candidate, then half a frame
printf 'id,task,steps\n1,nosuch,[]\n' | $s --format csv; echo "status $?"
printf '\014\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\014\0\0' | $s --format packed | od -An -c | tr -s ' '
# a reader that goes away: no word, ended by the signal also where it is ignored
for i in 1 2 3 4 5 6; do cat b.json b.json b.json b.json; done >c.json
{ (trap '' PIPE; $s <c.json; echo "status $?" >status); } | head -n 1 >/dev/null; cat status
# a reader that is slow gets all of it
$s <b.json | { sleep 0.3; wc -l; }
for o in "--stream a.json" "--stream --strict" "--stream --operators --eval" "--stream --measured x" "--stream --profile two-stage" "--stream --format csv --eval" "--stream --format xml" "--batch 3 --tasks t a.json"; do cdmpp-predict --model m $o </dev/null 2>&1 | head -n 1; done
# a task file that says something else than the one before: told, as without --stream
cp "$ROOT/tests/fuzz/seeds/taskfile/matmul.tasks.json" one.tasks.json; sed 's/max(C\[i, j\], 0)/min(C[i, j], 0)/' one.tasks.json >two.tasks.json
cdmpp-predict --model "$ROOT/tests/golden/model_v1.cdmpp" --tasks one.tasks.json --tasks two.tasks.json --stream </dev/null 2>&1 | grep 'goes first'
