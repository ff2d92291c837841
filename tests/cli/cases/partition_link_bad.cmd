# Links and machines that cannot be.
P="cdmpp-partition link"
try() { "$@"; echo "exit $?"; }
try $P
try $P fly
try $P show
try $P fit a b
try $P show --devices cpu0 a.json
try $P measure a.json
try $P measure --contention --corun c.csv
try $P show nowhere.json
echo '[1' >a.json; try $P show a.json
echo '{"cdmpp_machine": 1, "devices": [{"name": "a", "kind": "cpu", "launch_s": 0}]}' >a.json; try $P show a.json
echo '{"cdmpp_machine": 1, "devices": [{"name": "a", "kind": "cpu", "launch_s": -1, "sync_s": 0}]}' >a.json; try $P show a.json
echo '{"cdmpp_machine": 1, "devices": [{"name": "a", "kind": "cpu", "launch_s": NaN, "sync_s": 0}]}' >a.json; try $P show a.json
echo '{"cdmpp_machine": 1, "devices": [{"name": "a", "kind": "cpu", "launch_s": 0, "sync_s": 0}], "links": [{"from": "a", "to": "b", "how": "w", "n": 3, "noise": 0, "pieces": [[0, 1, 1]]}]}' >a.json
try $P show a.json
echo '{"cdmpp_links": 1}' >a.json; try $P show a.json
echo '{"links": []}' >a.json; try $P show a.json
echo "--- pairs"
try $P fit nowhere.csv
: >p.csv; try $P fit p.csv
echo bytes,seconds >p.csv; try $P fit p.csv
printf 'bytes,ms\n1,2\n' >p.csv; try $P fit p.csv
printf 'bytes,seconds\n1,1e-6\n2,x\n' >p.csv; try $P fit p.csv
printf 'bytes,seconds\n1,1e-6\n2,nan\n' >p.csv; try $P fit p.csv
printf 'bytes,seconds\n1,1e-6\n2,2e-6\n' >p.csv; try $P fit p.csv
printf 'bytes,seconds\n1,1e-6\n2,2e-6\n0,1e-6\n' >p.csv; try $P fit p.csv
printf 'bytes,seconds\n1,1e-6,3\n' >p.csv; try $P fit p.csv
printf 'bytes,bytes\n1,1e-6\n' >p.csv; try $P fit p.csv
echo "--- devices that are not here"
try $P measure --devices tpu0
try $P measure --devices cpu1023
try $P measure --devices ,
try $P measure --max-mb 0
try $P measure --corun nowhere.csv --devices cpu0
