#!/bin/sh
# layers.sh -- fail on an #include against the order of the rooms or past a room's door, on a source outside
# every room, and on a folder of more than 35 files.
#
# scripts/rooms.txt lists the rooms, lowest first. A file may include any header of its own room, and the door
# <room>/<room>.h of every room above it in that list, and its own room's files of web/ and embed/ (scripts/embed.sh).
# cdmpp.h stands below all rooms.
set -eu
cd "$(dirname "$0")/.."
sources() { find base features dataset profiler learner predictor -name '*.[ch]' -o -name '*.def' | sort; }
{
    echo cdmpp.h:0:
    sources | sed 's/$/:0:/'
    # shellcheck disable=SC2046
    grep -Hn '^#include "' cdmpp.h $(sources) || :
} | awk -F'[:"]' -v rooms=scripts/rooms.txt '
function dir(p) { return p ~ /\// ? substr(p, 1, match(p, /\/[^\/]*$/) - 1) : "." }
function name(d) { sub(/.*\//, "", d); return d }
function no(why) { printf "%s:%s: %s\n", $1, $2, why; bad++ }
BEGIN { while ((getline r < rooms) > 0) if (r !~ /^#/ && r != "") rank[r] = ++n; rank["."] = 0 }
$2 == 0 { file[$1] = 1; if (!(dir($1) in rank)) no("no room of scripts/rooms.txt"); count[dir($1)]++; next }
{
    a = dir($1); b = dir($4); seen++
    if ($4 ~ /\/(web|embed)\/[^\/]*\.h$/) { if (dir(b) != a) no($4 " belongs to another room") }
    else if (!($4 in file)) no("includes " $4 ", which is not there")
    else if (a == b || b == ".") next
    else if (rank[b] > rank[a]) no(a " may not include " $4 ": it is not below")
    else if ($4 != b "/" name(b) ".h" && $4 !~ /\.def$/) no($4 " is private; the door is " b "/" name(b) ".h")
}
END {
    for (d in count) if (count[d] > 35) { printf "%s: %d files, at most 35\n", d, count[d]; bad++ }
    printf "layers: %d rooms, %d includes checked, %d wrong\n", n, seen, bad
    exit bad > 0
}'
