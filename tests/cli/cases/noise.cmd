# what was measured while the machine was too noisy is not written, and where it is wanted all the same it is marked. The figures are made: no load is needed.
# Long: no sanitizer.
. "$T/lib.sh"
export XDG_CACHE_HOME=$PWD/cache CDMPP_TEST_NOISE=0.5,0.02
cpu=cpu$(sed -n 's/^Cpus_allowed_list:[^0-9]*\([0-9]*\).*/\1/p' /proc/self/status)
exec 2>&1
names() { sed -E 's/\([a-z0-9_]+\)/(NAME)/'; }
describe() { cdmpp-profile --describe-device --measure "$@" 2>&1 | grep '^# \|error' | names; }
echo "--- a description"
CDMPP_TEST_TRIAD_MB=${CDMPP_TEST_CPU:+4} describe # here with the arrays that users have
CDMPP_TEST_NOISE=0.02,0.4 describe --keep-noisy
cdmpp-profile --describe-device --keep-noisy
echo "--- links"
link() { cdmpp-partition link measure --devices $cpu --as zen4 --max-mb 1 --repeats 1 --out m.json "$@" >text 2>err; echo "status $?"; grep -h 'NOISY\|^Measured\|error' text err | names; }
link; ls m.json 2>/dev/null
link --keep-noisy; sed -n 's/.*"noise": \({"spread".*\)}$/\1/p' m.json | sed 's/"figure": "[^"]*"/"figure": "NAME"/'
cdmpp-partition link show m.json | grep NOISY | names
CDMPP_TEST_NOISE=0.01,0 link
cdmpp-partition link show --keep-noisy m.json; echo "status $?"
echo "--- curves"
curves() { cdmpp-profile curves --network rnn --input-size 2 --sizes batch=1,2 --trials 1 --threads 1 --budget-ms 1 --out c.tsv -q --pool 1 "$@" 2>&1 | names; }
curves; ls c.tsv 2>/dev/null
curves --keep-noisy; head -n 1 c.tsv
