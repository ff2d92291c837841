# cores of one type: this machine has them, and says so in the record, or it says what it has
. "$T/lib.sh"
XDG_CACHE_HOME=$PWD
export XDG_CACHE_HOME
cdmpp-profile --list-tasks --network matmul --input-size 16 --out-tasks t.json >/dev/null
cdmpp-profile draw -q --tasks t.json --trials 1 --out d.json
for c in big little smt-idle smt-busy; do
    cdmpp-profile records -q --tasks t.json --threads 1 --budget-ms 1 --core-type $c --stats $c.jsonl --out $c.json d.json >out 2>err
    st=$?
    case $st in
    0) grep -q "llvm -model=[^ \"]*-$c\"" $c.json && grep -q "\"core_type\":\"$c\"" $c.jsonl && echo "$c: as it should be" ;;
    6) grep -q "error: no core for $c: none of the\|error: no $c core: the [0-9]* processors.*alike\|error: no $c core: this system tells neither" err && echo "$c: as it should be" ;;
    *) echo "$c: status $st" ;;
    esac
done
echo "--- a board is told"
cdmpp-tune --network matmul --input-size 16 --core-type little --host b --transport 'echo "$@" >&2; exit 1' --out b.json; echo "status $?"
cdmpp-profile records --tasks t.json --core-type smt-busy --host b --transport 'echo "$@" >words; exit 1' --out b.json d.json >out 2>err; cat words
echo "--- a transport that loses the word"
cdmpp-profile records --tasks t.json --core-type little --host b --transport 'exec cdmpp-profile --worker' --out lost.json d.json >out 2>err; echo "status $?"
grep -o "does not measure on the type of cores that was asked for" err | head -n 1; cat lost.json
cdmpp-tune --network matmul --input-size 16 --threads 1 --core-type little --host b --transport 'exec cdmpp-profile --worker' --out lost2.json 2>&1 | grep -o "does not measure on the type of cores that was asked for"
echo "--- what does not go together"
cdmpp-profile records --tasks t.json --core-type big --dry-run d.json; echo "status $?"
cdmpp-profile records --tasks t.json --core-type fast --out x.json d.json; echo "status $?"
cdmpp-profile draw --tasks t.json --core-type big; echo "status $?"
cdmpp-profile --describe-device --core-type big cuda; echo "status $?"
cdmpp-tune --list-tuners --core-type big; echo "status $?"
