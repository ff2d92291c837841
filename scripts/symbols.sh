#!/bin/sh
# symbols.sh [BUILD] -- fail when a library shows a name that it should not.
#
# libcdmpp.so: exactly the functions that cdmpp.h declares, each with a version. libcdmpp.a: nothing
# but cdmpp_* and cd_*, so that it can be linked next to other code.
set -eu
cd "$(dirname "$0")/.."
B=${1:-${B:-build/release}}
want=$(grep -o 'cdmpp_[a-z_]*(' cdmpp.h | tr -d '(' | sort -u)
versioned=$(nm -D --with-symbol-versions --defined-only "$B/libcdmpp.so" | awk '$2 != "A" { print $3 }' | sort -u)
got=$(echo "$versioned" | sed 's/@.*//')
bad=0
for s in $versioned; do
    case $s in *@@CDMPP_[0-9]*) ;; *) echo "symbols: libcdmpp.so exports $s without a version"; bad=1 ;; esac
done
for s in $got; do
    echo "$want" | grep -qx "$s" || { echo "symbols: libcdmpp.so exports $s, which cdmpp.h does not declare"; bad=1; }
done
for s in $want; do
    echo "$got" | grep -qx "$s" || { echo "symbols: cdmpp.h declares $s, which libcdmpp.so does not export"; bad=1; }
done
for s in $(nm --defined-only -g "$B/libcdmpp.a" | awk 'NF == 3 { print $3 }' | grep -v '^cd_\|^cdmpp_' || :); do
    echo "symbols: libcdmpp.a defines $s, expected cd_* or cdmpp_*"
    bad=1
done
echo "symbols: $(echo "$got" | wc -l) exported"
exit $bad
