#!/bin/sh
# check_format.sh [FILE...] -- are C sources laid out as clang-format does it by .clang-format, with no
# line over 100 columns? Default: all of them.  check_format.sh --fix [FILE...] lays them out.
#
# The last line counts, as scripts/check.sh reads it. Versions of clang-format differ in what they
# write: only version 14 (Debian 12) is asked. Exit status 77 where it is not there.
set -u
cd "$(dirname "$0")/.." || exit 1
tool=
for t in clang-format-14 clang-format; do
    [ -n "$tool" ] || ! "$t" --version 2>/dev/null | grep -q 'version 14\.' || tool=$t
done
[ -n "$tool" ] || { echo "format: no clang-format 14 here (Debian: clang-format)"; exit 77; }
fix=
[ "${1:-}" != --fix ] || { fix=1; shift; }
tables= # rows of X macros and of options: clang-format takes no part of an array
sources() { find . -path ./build -prune -o -name "$1" -print; }
# shellcheck disable=SC2046,SC2086
[ $# -gt 0 ] || { set -- $(sources '*.[ch]'); tables=$(sources '*.def'); }
[ -z "$fix" ] || exec "$tool" -i "$@"
bad=$(printf '%s\n' "$@" | xargs -P "$(nproc)" -n 40 "$tool" --dry-run 2>&1 | sed -n 's/^\([^:]*:[0-9]*\):.*-Wclang-format.*/\1: laid out otherwise than .clang-format says/p')
# Columns are characters: awk of Debian counts bytes.
# shellcheck disable=SC2086
wide=$(LC_ALL=C.UTF-8 sed -s -n 's/^.\{101,\}$/&/; t put; d; :put; F; =' "$@" $tables | paste -d: - - | sed 's/$/: more than 100 columns/')
failed=$(printf '%s%s' "$bad" "${wide:+
$wide}" | sed '/^$/d' | tee /dev/stderr | cut -d: -f1 | sort -u | grep -c .)
[ "$failed" -eq 0 ] || echo "format: scripts/check_format.sh --fix lays them out" >&2
# shellcheck disable=SC2086
set -- "$@" $tables
echo "format: $(($# - failed)) passed, $failed failed"
[ "$failed" -eq 0 ]
