#!/bin/sh
# install.sh [-u] -- put build $B under $DESTDIR$PREFIX, or take it away (-u).
#
#   bin/cdmpp-*   lib/libcdmpp.{a,so*}   lib/pkgconfig/cdmpp.pc   include/cdmpp.h
#   share/cdmpp/{configs,examples,docs}
#
# $PREFIX is what the installed files say about themselves, $DESTDIR only where
# they are put now. Called by `make install` and `make uninstall`.
set -eu
cd "$(dirname "$0")/.."
B=${B:-build/release} PREFIX=${PREFIX:-/usr/local}
case $PREFIX in /*) ;; *) echo "install: PREFIX must be absolute, found $PREFIX" >&2; exit 2 ;; esac
to=${DESTDIR:-}$PREFIX
version=$(sed -n 's/^#define CDMPP_VERSION "\(.*\)"/\1/p' cdmpp.h)
so=libcdmpp.so.${version%%.*}

if [ "${1:-}" = -u ]; then
    for f in "$B"/cdmpp-*; do
        [ -f "$f" ] && [ -x "$f" ] && rm -f "$to/bin/$(basename "$f")"
    done
    rm -f "$to/lib/libcdmpp.a" "$to/lib/libcdmpp.so" "$to/lib/$so" "$to/lib/libcdmpp.so.$version" \
        "$to/lib/pkgconfig/cdmpp.pc" "$to/include/cdmpp.h"
    rm -rf "$to/share/cdmpp"
    exit 0
fi

mkdir -p "$to/bin" "$to/lib/pkgconfig" "$to/include" "$to/share/cdmpp"
for f in "$B"/cdmpp-*; do
    if [ -f "$f" ] && [ -x "$f" ]; then install -m 755 "$f" "$to/bin/"; fi
done
install -m 644 cdmpp.h "$to/include/"
install -m 644 "$B/libcdmpp.a" "$to/lib/"
install -m 755 "$B/libcdmpp.so" "$to/lib/libcdmpp.so.$version"
ln -sf "libcdmpp.so.$version" "$to/lib/$so"
ln -sf "$so" "$to/lib/libcdmpp.so"
cp -R configs examples docs "$to/share/cdmpp/"
hdf5=hdf5
if pkg-config --exists hdf5-serial 2>/dev/null; then hdf5=hdf5-serial; fi
cat >"$to/lib/pkgconfig/cdmpp.pc" <<EOF
prefix=$PREFIX
libdir=\${prefix}/lib
includedir=\${prefix}/include

Name: cdmpp
Description: Predicts the latency of tensor programs
Version: $version
Requires.private: $hdf5 yaml-0.1 liblzma libzstd zlib
Libs: -L\${libdir} -lcdmpp
Libs.private: -lxgboost -lopenblas -lpthread -lm
Cflags: -I\${includedir}
EOF
if [ -z "${DESTDIR:-}" ] && [ "$(id -u)" = 0 ] && command -v ldconfig >/dev/null; then ldconfig; fi
echo "install: $to"
