#!/bin/sh
# check_long.sh -- what takes minutes: sanitizers, refused allocations, threads, exported models,
# reports in a browser, and the reference sets where CDMPP_DATA names them (docs/reference/data.md). The
# last line is the sum.
set -u
cd "$(dirname "$0")/.."
. scripts/tied.sh
data=${CDMPP_DATA:-}
unset CDMPP_DATA # only the last stages are to find it
tally=build/check_long.tally
mkdir -p build
: >"$tally"
stage() { # title, settings and stages of check.sh
    t0=$(date +%s) lines=$(wc -l <"$tally")
    echo "== $1"
    shift
    # A stage that ends without its counts died: that is a failure too.
    $tied env TALLY="$tally" "$@" || [ "$(wc -l <"$tally")" -gt "$lines" ] || { echo "   FAIL: the stage died"; echo "0 1 0" >>"$tally"; }
    echo "   $(($(date +%s) - t0)) s"
}

stage "ASan and UBSan, allocation after allocation refused" MODE=san scripts/check.sh unit corpora cli
# The threads of our own. Training is left out: OpenMP is not built for TSan.
stage "TSan" MODE=tsan UNITS="base/cli/test_log base/core/test_threads dataset/extract/test_extract learner/hpo/test_hpo learner/loss/test_domain_distance learner/fit/test_fit learner/nn/test_net_laws \
        learner/fit/test_optim learner/distributed/test_rabit_tracker learner/report/test_train_artifacts predictor/score/test_answer_cache predictor/api/test_context predictor/score/test_predict predictor/api/test_score predictor/serve/test_serve predictor/serving/test_serving_sweep profiler/runtime/multi/test_multi_executor profiler/runtime/single/test_executor_units" \
    TSAN_OPTIONS="suppressions=$PWD/tests/support/tsan.supp" scripts/check.sh unit
stage "generated programs of many schedules" MODE=release CDMPP_ROUNDS=60 UNITS="profiler/codegen/c/test_codegen_c profiler/codegen/c/test_codegen_c_values" \
    scripts/check.sh unit
stage "ranks of cdmpp-mpi" MODE=release scripts/check.sh mpi
stage "accuracy, three seeds" MODE=release scripts/check.sh quick
stage "exports in Python" MODE=release scripts/check.sh export
stage "operators and networks against onnx" MODE=release CDMPP_DATA="$data" scripts/check.sh onnx
stage "gradients against PyTorch's" MODE=release scripts/check.sh grads
stage "reports in a browser" MODE=release scripts/check.sh report replay_html
if [ -n "$data" ] && [ -d "$data" ]; then
    stage "reference sets: reading" MODE=release CDMPP_DATA="$data" \
        UNITS="$(grep -rl --include='test_*.c' CDMPP_DATA tests | sed 's|^tests/||; s|\.c$||' | sort | tr '\n' ' ')" scripts/check.sh unit
    stage "reference sets: TVM's features" MODE=release CDMPP_DATA="$data" scripts/check.sh tvm
else
    echo "== reference sets: left out, CDMPP_DATA is not set or no folder"
fi
awk '{ p += $1; f += $2; s += $3 } END {
    if (s) printf "%d skipped in one mode, run in another\n", s
    printf "%d passed, %d failed\n", p, f
    exit f > 0 || p == 0 }' "$tally"
