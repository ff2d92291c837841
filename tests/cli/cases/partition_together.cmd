# threads for programs that are measured here: the shape of the tables is fixed, their times are not
export XDG_CACHE_HOME=$PWD/cache
K=t.json
cdmpp-profile --list-tasks --network gcn --input-size 32 --out-tasks "$K" >/dev/null
cdmpp-profile draw --tasks "$K" --trials 1 --seed 2 --target llvm >r.json
expect=$ROOT/tests/cli/cases/partition_together.expect
[ "$(nproc)" -ge 2 ] || { sed '/^exit 0$/,$d' "$expect"; sed -n 's/^stderr: //p' "$expect" >&2; exit 0; } # it needs two processors
together() { # a process that others stop for minutes is no program that hangs; what an error says stands in the output
    cdmpp-partition together --tasks "$K" --threads 2 --budget-ms 2 --rounds 2 --timeout 3600 "$@"
    set -- $?; [ "$1" = 0 ] || cat err; echo "status $1"
}
shape() { sed -E 's/[0-9.]+ (ns|us|ms|s)\b/T/g; s/ +/ /g; s/[0-9]+\.[0-9]{3} times/X times/; s/predicted [0-9.]+/predicted X/; s/kept: (one after the other|together, tuned|together, equal shares), X times as fast as (one after the other|together)/kept: BEST, X times as fast as OTHER/; s/; others used.*//; s/^run (together|one after the other): .*/VERDICT/; s/^(program [01]) [12] T [12] T$/\1 N T N T/'; }
together --run --out t.csv r.json 2>err | shape
sed 's/^"[^{]*",\([12]\),[^,]*,\(.*\)/K,\1,T,\2/' t.csv
cdmpp-partition together t.csv | tail -1 | shape
together --run --json r.json 2>err | grep -o '"ways":\[{"name":"one after the other"\|"kept":"\|"error_no":[0-9]*'
cdmpp-partition together --tasks "$K" --budget-ms 2 --limit 3 --threads 2 r.json 2>err | grep -c '^program [012]: '
cdmpp-partition together --tasks "$K" --run; echo "status $?"
cdmpp-partition together --run t.csv; echo "status $?"
cdmpp-partition together --tasks "$K" --rounds 3 r.json; echo "status $?"
cdmpp-partition together --tasks "$K" --threads 4096 r.json 2>err; echo "status $?"; sed 's/there are [0-9]*/there are N/' err
cdmpp-partition together --tasks "$K" --threads 1 --run --budget-ms 2 --rounds 1 r.json 2>err | shape | tail -5
