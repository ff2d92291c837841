# pairs of programs at the same time: the table's shape is fixed, its times are not
export XDG_CACHE_HOME=$PWD/cache
K="$ROOT/tests/fuzz/seeds/pickle/gru_p4.pkl"
cdmpp-profile draw --tasks "$K" --trials 1 --seed 2 >r.json
[ "$(nproc)" -ge 2 ] || exec cat "$ROOT/tests/cli/cases/profile_corun.expect" # it needs two processors
cdmpp-profile corun --tasks "$K" --limit 1 --budget-ms 2 --rounds 1 --out p.csv r.json >text 2>err; echo "status $?"
sed 's/^"[^{]*","[^{]*",\(disjoint\|shared\),/K,K,\1,/' p.csv | cut -d, -f1-4,12-16
cdmpp-profile corun --tasks "$K" --limit 1 --budget-ms 2 --rounds 1 --json r.json 2>err | grep -o '"sharing":"[a-z]*","error_no":0,"solo_s"'
cdmpp-profile corun --tasks "$K" --workload nosuch r.json; echo "status $?"
taskset -c "$(taskset -cp $$ | sed "s/.*: *\([0-9]*\).*/\1/")" cdmpp-profile corun --tasks "$K" r.json; echo "status $?"
