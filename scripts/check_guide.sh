#!/bin/sh
# check_guide.sh [PAGE...] -- run every command of README.md and of docs/guide.
#
# The commands are the lines of the blocks that begin with ```sh, a command a line (a \ at the end goes on). They run in
# a scratch folder with links to examples, configs and scripts, with the build in PATH and as build/release, and with a small
# build/quickstart in place of the one that `make quickstart` leaves. All pages share the folder: a page may use files of the pages before it.
# A command passes with exit status 0, or 3 (some items skipped). A block under a comment <!-- not run: REASON --> is left out,
# one under <!-- two processors --> where there is one, one under <!-- an OpenCL device --> where there is none.
#
# Called by scripts/check.sh (stage guide). The last line counts commands. VERBOSE=1 prints them.
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/tied.sh
ROOT=$PWD B=${B:-build/release}
case $B in /*) ;; *) B=$ROOT/$B ;; esac
if [ $# -eq 0 ]; then
    set -- README.md docs/guide/README.md docs/guide/install.md docs/guide/logs-to-model.md docs/guide/own-machine.md docs/guide/onnx-latency.md \
        docs/guide/faster-schedules.md docs/guide/two-devices.md docs/guide/another-gpu.md docs/guide/profiler-traces.md docs/guide/serving.md docs/guide/other-systems.md docs/guide/use-with-tvm.md docs/guide/glossary.md
    for p in docs/guide/*.md; do # a new page must not be forgotten
        case " $* " in *" $p "*) ;; *) echo "check_guide: add $p to the pages that run"; exit 1 ;; esac
    done
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/run/build/quickstart"
ln -s "$ROOT/examples" "$ROOT/configs" "$ROOT/scripts" "$work/run/"
ln -s "$B" "$work/run/build/release"
PATH=$B:$PATH XDG_CACHE_HOME=$work/cache CC=${CC:-gcc}
export PATH XDG_CACHE_HOME CC LC_ALL=C CDMPP_TEST_NOISE=0,0 CDMPP_TEST_TRIAD_MB=4 # as tests/cli/run.sh
cd "$work/run" || exit 1

# What quickstart leaves, from few records and rounds.
q=build/quickstart
{ cdmpp-extract -q --tasks examples/zen5/zen5.tasks.json.xz --out $q/sample.h5 examples/zen5/held_out.json || [ $? -eq 3 ]; } &&
    cdmpp-train -q configs/quickstart.yaml --set train.rounds=5 --out $q/record.cdmpp >/dev/null ||
    { echo "check_guide: no model"; exit 1; }

# PAGE:LINE, a tab, the command
for p; do
    awk -v page="$p" -v processors="$(nproc)" -v opencl="$(ls /etc/OpenCL/vendors 2>/dev/null | grep -c '[.]icd$')" '
        /^<!-- not run:/ || (/^<!-- two processors -->/ && processors < 2) || (/^<!-- an OpenCL device -->/ && !opencl) { skip = 1; next }
        /^```sh$/ { code = 1; next }
        /^```/ { if (!code && !other) other = 1; else other = 0; if (code || !other) skip = 0; code = 0; next }
        code && !skip && NF && !/^#/ {
            if (line == "") at = FNR
            line = line $0
            if (sub(/\\$/, "", line)) next
            print page ":" at "\t" line; line = "" }' "$ROOT/$p"
done >"$work/commands"

pass=0 fail=0 tab=$(printf '\t')
while IFS=$tab read -r at command; do
    [ -z "${VERBOSE:-}" ] || echo "$at: $command"
    t0=$(date +%s)
    $tied timeout 1800 sh -c "$command" >"$work/out" 2>&1 </dev/null
    rc=$?
    [ -z "${VERBOSE:-}" ] || echo "    status $rc, $(($(date +%s) - t0)) s"
    case $rc in
    0 | 3) pass=$((pass + 1)) ;;
    *) fail=$((fail + 1)); echo "FAIL $at: $command: status $rc"; tail -n 5 "$work/out" | cut -c 1-300 ;;
    esac
done <"$work/commands"
echo "guide: $pass passed, $fail failed"
[ $fail -eq 0 ] && [ $pass -gt 0 ]
