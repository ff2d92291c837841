# Records of random schedules: lowered again, the same each time.
cdmpp-profile draw --tasks "$ROOT/tests/fuzz/seeds/pickle/gru_p4.pkl" --trials 4 --seed 5 --out a.json
cdmpp-profile draw --tasks "$ROOT/tests/fuzz/seeds/pickle/gru_p4.pkl" --trials 4 --seed 5 >b.json
cmp a.json b.json && wc -l <a.json
cdmpp-profile records --dry-run --tasks "$ROOT/tests/fuzz/seeds/pickle/gru_p4.pkl" a.json
cdmpp-profile draw --tasks "$ROOT/tests/fuzz/seeds/pickle/gru_p4.pkl" --trials 1 --target cuda --json --out c.json
cdmpp-profile draw --trials 4
cdmpp-profile draw --tasks x.json --trials 0
