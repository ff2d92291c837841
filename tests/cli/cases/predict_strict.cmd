. "$T/lib.sh"
{ sed -n 1p "$HELD"; sed -n '2s/"SP"/"SPX"/p' "$HELD"; } >a.json
cdmpp-predict --strict --model "$ROOT/tests/golden/model_v1.cdmpp" --tasks "$K" a.json
