# calibrate on a busy machine: refused before anything is read or measured, and how much time it needs at least. The noise is made.
. "$T/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
exec 2>&1
cal() { cdmpp-tune calibrate --cost-model no-such.cdmpp --out x.cdmpp "$@"; echo "exit $?"; }
echo "--- the check of noise comes first"
CDMPP_TEST_NOISE=0.8,0 cal
CDMPP_TEST_NOISE=0.12,0 cal --seconds 20
CDMPP_TEST_NOISE=0.8,0 cal --force
# a model of a noisy machine is no default of all commands
CDMPP_TEST_NOISE=0.8,0 cdmpp-tune calibrate --cost-model no-such.cdmpp --force; echo "exit $?"
CDMPP_TEST_NOISE=0.02,0 cal
ls
echo "--- how long"
cal --seconds 14
cal --seconds 3601
echo "--- whose time"
cal --cpu-time --target cuda
cal --cpu-time --records x --tasks y
cdmpp-tune --tasks x --out o --cpu-time; echo "exit $?"
