# cdmpp alone: this machine, which model answers and how far off it may be, five networks, what comes next
# Long: no sanitizer.
export XDG_CACHE_HOME=$PWD/cache
unset CDMPP_DEFAULT_MODEL CDMPP_MODELS
# which known processor is nearest, and whose code its records are of, depends on the caches and the clock of the machine that runs this
known='s/compiled by TVM or cdmpp/compiled by cdmpp/; s/(granite-rapids|zen[0-9]+(-[a-z0-9]+)?)( stands in|\)|"|,? in the place)/KNOWN\3/g'
number() { sed -E "$known" | sed -E 's/[0-9.]+ (us|ms|s)\b/T/g; s/ +T/ T/g; s/within [0-9.]+x/within Fx/; s/, [0-9]+ logical cores?( \([^)]*\))?/, N logical cores/; s/, [0-9.]+ GiB/, N GiB/; s/default-[0-9]+/default-N/'; }
# a processor that no model knows: said once, in the answer; nothing on standard error
CDMPP_TEST_CPU=$ROOT/tests/cli/cpus/sse42.cpuinfo cdmpp >1.txt 2>2.txt; echo "status $?"; cat 2.txt
grep -v GPU 1.txt | number
CDMPP_TEST_CPU=$ROOT/tests/cli/cpus/sse42.cpuinfo cdmpp --json >1.json; echo "status $?"
grep -o '"schema":"cdmpp.overview"\|"known":[a-z]*\|"network":"[^"]*"\|"device":"[^"]*"\|"warnings":.*' 1.json | sed -E "$known"
# as cdmpp-replay answers, with one warning in place of many
CDMPP_TEST_CPU=$ROOT/tests/cli/cpus/sse42.cpuinfo cdmpp-replay "$ROOT/examples/resnet18.onnx" 2>&1 >3.txt | sed -E 's|[^ ]*/models/||; s/default-[0-9]+/default-N/; s/up to [0-9.]+x/up to Fx/' | sed -E "$known"
sed -E 's/[0-9.]+ (us|ms|s)\b/T/g; s/ +/ /g; s/ T [0-9.]+ / T R /' 3.txt | sed -E "$known"
