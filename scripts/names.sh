#!/bin/sh
# names.sh [BUILD] -- fail on an exported name outside the scheme, and on a type or constant with two meanings.
#
# An exported function or variable is cd_<room>_..., cd_<leading words of its file>_..., or cd_<subject>_... where no other
# room has this subject, the first two words: executor_pool.c in runtime/single may define cd_executor_pool_open and
# cd_executor_open, and cd_cache_flush_caches where nothing outside its room is called cd_cache_flush_... Types (cd_*) and constants (CD_*) are
# defined in one place of the whole tree. A type that a header declares and does not define may have a definition in each
# of several .c files: every back end has its own cd_backend.
set -eu
cd "$(dirname "$0")/.."
B=${1:-${B:-build/release}}
dirs="base features dataset profiler learner predictor"
{
    # One nm for all objects: a process for each takes a minute. Its lines are "OBJECT:ADDRESS KIND NAME".
    # shellcheck disable=SC2086
    find $dirs -name '*.c' | sort | while read -r f; do
        o=$B/${f%.c}.o
        [ ! -e "$o" ] || echo "$o"
    done | xargs nm -A -g --defined-only | awk -v b="$B/" 'NF == 3 && $2 ~ /[TDBR]/ {
        o = $1; sub(/:[0-9a-f]*$/, "", o); f = substr(o, length(b) + 1); sub(/\.o$/, ".c", f); print f, $3 }'
} | awk '
{
    n = split($1, path, "/"); room = path[n - 1]; stem = path[n]; sub(/\.c$/, "", stem)
    if ($2 == "main" || $2 ~ /^cdmpp_/ || $2 ~ /\./) next
    seen++; ok = 0
    k = split(stem, word, "_"); p = "cd"
    for (i = 1; i <= k && !ok; i++) { p = p "_" word[i]; ok = $2 == p || index($2, p "_") == 1 }
    if (!ok) ok = $2 == "cd_" room || index($2, "cd_" room "_") == 1
    split($2, part, "_"); subject = part[2] "_" part[3]; folder = $1; sub(/[^\/]*$/, "", folder)
    if (!((subject, folder) in has)) { has[subject, folder]; rooms[subject]++ }
    if (!ok) { other[$2] = subject; where[$2] = $1; expected[$2] = "cd_" room "_* or cd_" stem "_*" }
}
END {
    for (x in other) if (rooms[other[x]] > 1) { printf "%s: %s: expected %s, another room has cd_%s_*\n", where[x], x, expected[x], other[x]; bad++ }
    printf "names: %d exported, %d outside the scheme\n", seen, bad; exit bad > 0 }' || status=1
# shellcheck disable=SC2086
{ find $dirs -name '*.h' | sort; find $dirs -name '*.c' | sort; } | xargs awk '
FNR == 1 { inside = 0 }
/^typedef struct cd_[a-z0-9_]+ cd_[a-z0-9_]+;/ && FILENAME ~ /\.h$/ { n0 = $4; sub(/;/, "", n0); opaque[n0] = 1 }
function define(name) { if (opaque[name] && FILENAME ~ /\.c$/) return; if (name in at && at[name] != FILENAME ":" FNR) { printf "%s:%d: %s is defined in %s too\n", FILENAME, FNR, name, at[name]; bad++ } else at[name] = FILENAME ":" FNR }
match($0, /^(typedef )?(struct|union|enum) cd_[a-z0-9_]+ \{/) { split($0, w, " "); define(w[1] == "typedef" ? w[3] : w[2]); tagged = $0 ~ /^typedef/ }
/^typedef (struct|union|enum) \{/ { tagged = 0 }
/^typedef (struct|union|enum) \{.*\} cd_[a-z0-9_]+;/ { s = $0; sub(/.*\} /, "", s); sub(/;.*/, "", s); define(s) }
/^\} cd_[a-z0-9_]+;/ && !tagged { s = $0; sub(/^\} /, "", s); sub(/;.*/, "", s); define(s) }
/^(typedef )?enum .*\{/ || /^enum \{/ { inside = FILENAME ~ /\.h$/ }
inside {
    s = $0; gsub(/\/\*[^*]*\*\//, "", s); if (s ~ /\{/) sub(/^[^{]*\{/, "", s)
    n = split(s, c, ",")
    for (i = 1; i <= n; i++) if (match(c[i], /^ *CD_[A-Z0-9_]+ *(=|\}|$)/)) { t = c[i]; gsub(/[ =}].*|^ */, "", t); sub(/^ +/, "", c[i]); split(c[i], e, /[ =}]/); define(e[1]) }
    if ($0 ~ /\}/) inside = 0
}
END { printf "names: %d types and constants, %d with two meanings\n", length(at), bad; exit bad > 0 }' || status=1
exit ${status:-0}
