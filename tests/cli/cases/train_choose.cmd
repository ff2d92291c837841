# what to measure on a new device: records of the training part as they stand in the log, which cdmpp-profile takes; keys of tasks; a budget
. "$T/lib.sh"
cp "$HELD" held.json
cdmpp-extract -q --tasks "$K" --out a.h5 held.json || exit
choose() { cdmpp-train "$ROOT/configs/own.yaml" --set data.files=a.h5 --set split.kind=task "$@"; }
choose --choose 12 --out 12.json
grep -cxFf held.json 12.json
choose --choose 12 -j3 -q >again.json; cmp again.json 12.json && echo "the same"
cdmpp-profile records -q --dry-run --tasks "$K" 12.json; echo "status $?"
choose --choose-tasks 4 -q | sed 's/"/\\"/g' >keys; wc -l <keys; grep -cFf keys held.json
choose --choose 5 --json | sed 's/"seconds":[0-9.e-]*/"seconds":S/g; s/},.*/} .../'
choose --choose 40 --budget 1 --out few.json | sed 's/about .* s on/about T s on/'; wc -l <few.json
echo "--- errors"
choose --choose 3 --budget 1 --choose-tasks 3; echo "status $?"
choose --budget 1; echo "status $?"
choose --choose 3 --finetune m.cdmpp; echo "status $?"
cdmpp-train "$ROOT/configs/t4-operators.yaml" --set "data.files=[$ROOT/configs]" --choose 3; echo "status $?"
head -n 20 held.json >short && mv short held.json
choose --choose 12 --out no.json; echo "status $?"
rm held.json
choose --choose 12 --out no.json; echo "status $?"; ls no.json 2>/dev/null
