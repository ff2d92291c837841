# one record; the model predicts a constant
. "$T/lib.sh"
head -n 1 "$HELD" >a.json
cdmpp-predict --model "$ROOT/tests/golden/model_v1.cdmpp" --tasks "$K" --device zen5-avx512 a.json
