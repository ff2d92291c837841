#!/bin/sh
# cross.sh COMPILER FOLDER [RUN...] -- programs of `cdmpp-tune --emit c --emit-dir FOLDER` on a processor that has neither cdmpp nor a compiler.
#
#   FOLDER/NAME.c ── COMPILER -static ──> program ── RUN program N ──> seconds, sum of what it wrote ── beside the sum of the same text compiled here
#
#   scripts/cross.sh 'aarch64-linux-gnu-gcc' best qemu-aarch64                       # an emulator: its times say nothing
#   scripts/cross.sh 'arm-linux-gnueabihf-gcc -march=armv7-a+simd' best scripts/on_board.sh pynq@board
#
# RUN gets the path of the program and the number of runs, N=20. Without RUN the program is started as it is. Each line: program, seconds of a run, both sums, "equal"
# or "differs" (by more than 1e-4 of the sum). Exit status 1: one differs or does not run. Debian has the compilers: gcc-aarch64-linux-gnu, gcc-arm-linux-gnueabihf.
set -eu
[ $# -ge 2 ] || { sed -n '2,12s/^# \{0,1\}//p' "$0" >&2; exit 2; }
compiler=$1 folder=$2
ls "$folder"/*.c >/dev/null 2>&1 || { echo "cross.sh: $folder: no folder with programs (NAME.c)" >&2; exit 2; }
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
for text in "$folder"/*.c; do
    name=$(basename "$text" .c)
    # shellcheck disable=SC2086 # a command with options
    if ! $compiler -std=gnu11 -O2 -static "$text" -o "$work/there" -lm 2>"$work/why" || ! ${CC:-cc} -std=gnu11 -O2 "$text" -o "$work/here" -lm 2>>"$work/why"; then
        printf '%-24s does not compile: %s\n' "$name" "$(grep -m 1 error "$work/why" || head -n 1 "$work/why")"
        bad=1
        continue
    fi
    if ! "$@" "$work/there" "${N:-20}" >"$work/said" 2>"$work/why" </dev/null; then
        printf '%-24s does not run: %s\n' "$name" "$(head -n 1 "$work/why")"
        bad=1
        continue
    fi
    "$work/here" 1 >"$work/want"
    awk -v name="$name" '
        FNR == 1 && NR != FNR { seconds = $1 }
        / sum / { if (NR == FNR) { want += $NF; n++ } else { got += $NF; m++ } }
        END {
            far = got - want; if (far < 0) far = -far; size = want < 0 ? -want : want
            same = n && n == m && got == got && far <= 1e-4 * size
            printf "%-24s %s s  sum %.9g, here %.9g  %s\n", name, seconds, got, want, same ? "equal" : "differs"
            exit !same
        }' "$work/want" "$work/said" || bad=1
done
exit $bad
