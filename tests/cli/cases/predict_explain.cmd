# where the time of one record goes, as text and as JSON; bad places and records
. "$T/lib.sh"
explain() { cdmpp-predict --model "$ROOT/tests/golden/model_v1.cdmpp" --tasks "$K" "$@"; }
sed -n 1,3p "$HELD" >a.json
sed -n '2s/"SP"/"SPX"/p' "$HELD" >>a.json
explain --explain a.json:3 | cut -c 1-72
explain --json --explain a.json | sed 's/,"nest".*/}/; s/\(\.[0-9]\{4\}\)[0-9]*/\1/g'
for bad in a.json:4 a.json:9 nosuch.json; do explain --explain $bad; echo "status $?"; done
explain --explain a.json:1 a.json; echo "status $?"
