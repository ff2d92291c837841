# variants of one schedule, measured: the table's shape is fixed, its times are not
export XDG_CACHE_HOME=$PWD/cache
K="$ROOT/tests/fuzz/seeds/pickle/gru_p4.pkl"
cdmpp-profile draw --tasks "$K" --trials 1 --seed 2 >r.json
cdmpp-profile sweep --tasks "$K" --threads 1 --budget-ms 2 --factor unroll,parallel --out s.csv --plot s.svg r.json >text 2>err; echo "status $?"
cut -d, -f1,2,6 s.csv
grep -c '<rect x' s.svg
cdmpp-profile sweep --tasks "$K" --threads 1 --budget-ms 2 --factor unroll --json r.json 2>err | grep -o '"factor":"[a-z]*","value":"[^"]*"'
cdmpp-profile sweep --tasks "$K" --factor weird r.json; echo "status $?"
cdmpp-profile sweep --tasks "$K" --workload nosuch r.json; echo "status $?"
