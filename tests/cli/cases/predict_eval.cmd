. "$T/lib.sh"
head -n 3 "$HELD" >a.json
cdmpp-predict --eval --model "$ROOT/tests/golden/model_v1.cdmpp" --tasks "$K" a.json
echo "--- nothing was scored: no figures, status 4"
printf '{\n' >bad.json; : >empty.json
for f in bad.json empty.json; do cdmpp-predict --eval --model "$ROOT/tests/golden/model_v1.cdmpp" --tasks "$K" $f; echo "status $?"; done
cdmpp-predict --eval --json --model "$ROOT/tests/golden/model_v1.cdmpp" --tasks "$K" bad.json | cut -c 1-140
head -n 1 a.json | sed 's/"r": \[\[[^]]*\], 0,/"r": [[1e10], 2,/' >failed.json
cdmpp-predict --eval --model "$ROOT/tests/golden/model_v1.cdmpp" --tasks "$K" failed.json >out; echo "status $?"; grep -o '"measured_s".*' out
printf 'op,device,B,H\nadd,t4,100,1000\n' >q.csv; head -n 1 q.csv >none.csv
for f in q.csv none.csv; do cdmpp-predict --operators --eval --cost-model "$ROOT/tests/golden/operators_v1.cdmpp" --devices "$ROOT/configs/devices.yaml" $f >out; echo "status $?"; cut -c 1-60 out; done
