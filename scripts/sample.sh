#!/bin/sh
# sample.sh [FOLDER] -- make the sample that the repository carries (examples/zen5)
# from $CDMPP_DATA/tenset-cpu. Same data, same xz: same bytes.
#
#   measure_records/<device>/records.json.xz   the records but those held out
#   held_out.json                              every 80th program of zen5-avx512
#   zen5.tasks.json.xz                         tasks and networks, our text form
#
# zen5-avx2 holds programs of zen5-avx512 again: those held out are in neither.
set -eu
cd "$(dirname "$0")/.."
data=${CDMPP_DATA:?set CDMPP_DATA to the folder that holds tenset-cpu}/tenset-cpu
out=${1:-examples/zen5} B=${B:-build/release}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
tar -xJf "$data/records.tar.xz" -C "$tmp"
mkdir -p "$out"
cat_logs() { find "$tmp/measure_records/$1" -name '*.json' | LC_ALL=C sort | tr '\n' '\0' | xargs -0 cat; }
program() { sed 's/", "llvm [^"]*"/"/; s/, "r": .*//' "$@"; } # key and steps, without target and times
cat_logs zen5-avx512 | awk 'NR % 80 == 40' >"$out/held_out.json"
program "$out/held_out.json" >"$tmp/held"
for device in zen5-avx512 zen5-avx2; do
    mkdir -p "$out/measure_records/$device"
    cat_logs $device >"$tmp/log"
    program "$tmp/log" | paste - "$tmp/log" |
        awk -F '\t' -v held="$tmp/held" 'BEGIN { while ((getline l <held) > 0) out[l] = 1 } !($1 in out) { print $2 }' |
        xz -9e >"$out/measure_records/$device/records.json.xz"
done
"$B/cdmpp-extract" --write-tasks --tasks "$data/network_info" | xz -9e >"$out/zen5.tasks.json.xz"
