# pairs of programs at the same time: the table's shape is fixed, its times are not
export XDG_CACHE_HOME=$PWD/cache
K="$ROOT/tests/fuzz/seeds/pickle/gru_p4.pkl"
cdmpp-profile draw --tasks "$K" --trials 1 --seed 2 >r.json
expect=$ROOT/tests/cli/cases/profile_corun.expect
[ "$(nproc)" -ge 2 ] || { sed '/^exit 0$/,$d' "$expect"; sed -n 's/^stderr: //p' "$expect" >&2; exit 0; } # it needs two processors
cdmpp-profile corun --tasks "$K" --limit 1 --budget-ms 2 --rounds 1 --out p.csv r.json >text 2>err; echo "status $?"
sed 's/^"[^{]*","[^{]*",\(disjoint\|shared\),/K,K,\1,/' p.csv | cut -d, -f1-4,12-16
cdmpp-profile corun --tasks "$K" --limit 1 --budget-ms 2 --rounds 1 --json r.json 2>err | grep -o '"sharing":"[a-z]*","error_no":0,"solo_s"'
echo "--- groups: three on two processors, two of them take turns"
run() { taskset -c "$(taskset -cp $$ | sed 's/.*: *//; s/[-,].*//')","$(taskset -cp $$ | sed 's/.*[-,]//')" cdmpp-profile corun --tasks "$K" --limit 1 --budget-ms 2 --rounds 1 --group 3 --trials 2 "$@" r.json 2>err; echo "status $?"; }
run --pairs p.csv --out g.csv >text; sed 's/"[^{]*",/K,/' g.csv | cut -d, -f1-3,10; grep -o '2 processors, 1 for each program: 2 places' text
run --json | grep -o '"places":2,"times":6,"error":'
printf 'first,second,sharing,first_solo_s,second_solo_s,first_slowdown,second_slowdown,first_bytes,second_bytes,error_no\nx,x,shared,1,1,2,2,0,0,0\n' >other.csv
run --pairs other.csv; sed 's/no pair of.*\[/no pair of ... [/' err
cdmpp-profile corun --tasks "$K" --pairs p.csv r.json; echo "status $?"
cdmpp-profile corun --tasks "$K" --group 5 r.json; echo "status $?"
cdmpp-profile corun --tasks t --limit 64 --rounds 32 r.json; echo "status $?" # gets as far as the file
cdmpp-profile corun --tasks "$K" --workload nosuch r.json; echo "status $?"
taskset -c "$(taskset -cp $$ | sed "s/.*: *\([0-9]*\).*/\1/")" cdmpp-profile corun --tasks "$K" r.json; echo "status $?"
