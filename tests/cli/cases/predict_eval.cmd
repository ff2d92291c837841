. "$T/lib.sh"
head -n 3 "$HELD" >a.json
cdmpp-predict --eval --model "$ROOT/tests/golden/model_v1.cdmpp" --tasks "$K" a.json
