#!/bin/sh
# patterns.sh [EOP_DATA] -- the tables of docs/reference/patterns.md: planted laws, the op-curves of $CDMPP_DATA, ten sizes of a hundred against
# polynomials and, where EOP_DATA is the data/ folder of iscas-system/EOP, gains of splitting each type of operator.
set -eu
cd "$(dirname "$0")/.."
B=${B:-build/release} D=${CDMPP_DATA:-../shared/data}
unset MAKEFLAGS MFLAGS
make --no-print-directory -s B="$B" "$B/tests/bench/bench_perf_curve" "$B/tests/bench/bench_split" >&2
"$B/tests/bench/bench_perf_curve" planted 1000
curves=$D/op-curves/op_curves.tsv.xz
if [ -e "$curves" ]; then
    "$B/tests/bench/bench_perf_curve" curves "$curves"
    "$B/tests/bench/bench_perf_curve" leave "$curves"
    "$B/tests/bench/bench_perf_curve" range "$curves"
fi
[ $# -gt 0 ] || exit 0
set -- "$1" "$1/cnn-data/resnet18_cpu_1.csv" "$1/cnn-data/resnet18_k40_1.csv" "$1/cnn-data/yolov3_cpu_1.csv" "$1/cnn-data/yolov3_T4_1.csv"
for b in 4 16 64 256 512; do set -- "$@" "$1/rnn-data/lstm_${b}_cpu_$b.csv" "$1/rnn-data/lstm_${b}_k40_$b.csv"; done
for b in 4 16 64; do set -- "$@" "$1/rnn-data/gru_${b}_cpu_$b.csv" "$1/rnn-data/gru_${b}_k40_$b.csv"; done
shift
"$B/tests/bench/bench_split" "$@"
