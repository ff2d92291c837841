#!/bin/sh
# install.sh [-u] -- put build $B under $DESTDIR$PREFIX, or take it away (-u).
#
#   bin/cdmpp, bin/cdmpp-*   lib/libcdmpp.{a,so*}   lib/pkgconfig/cdmpp.pc   include/cdmpp.h
#   lib/cdmpp/libcdmpp-wrap.so      loaded by `cdmpp-profile wrap`
#   share/cdmpp/python              cdmpp_tvm.py, the plug-in for TVM (docs/reference/tvm.md), and cdmpp.py
#   share/cdmpp/models              the shipped cost models, and what they were trained on
#   share/cdmpp/configs             found by cdmpp-train and cdmpp-predict wherever they run
#   share/man/man1/cdmpp*.1         share/bash-completion/completions/cdmpp*
#   share/zsh/site-functions/_cdmpp*    (with PREFIX=/usr Debian's vendor-completions)
#   share/doc/cdmpp/*.md, examples
#
# $PREFIX is what the installed files say about themselves, $DESTDIR only where
# they are put now. Called by `make install` and `make uninstall`.
set -eu
cd "$(dirname "$0")/.."
B=${B:-build/release} PREFIX=${PREFIX:-/usr/local} LIBDIR=${LIBDIR:-lib}
case $PREFIX in /*) ;; *) echo "install: PREFIX must be absolute, found $PREFIX" >&2; exit 2 ;; esac
to=${DESTDIR:-}$PREFIX
version=$(sed -n 's/^#define CDMPP_VERSION "\(.*\)"/\1/p' cdmpp.h)
so=libcdmpp.so.${version%%.*}

case $PREFIX in /usr) zsh=$to/share/zsh/vendor-completions ;; *) zsh=$to/share/zsh/site-functions ;; esac
man=$to/share/man/man1 bash=$to/share/bash-completion/completions doc=$to/share/doc/cdmpp

if [ "${1:-}" = -u ]; then
    for m in */cmd/main_*.c */cmd/*/main_*.c; do # of every command, built or not
        c=cdmpp-$(basename "${m##*/main_}" .c)
        [ "$c" = cdmpp-cdmpp ] && c=cdmpp
        rm -f "$to/bin/$c" "$man/$c.1" "$bash/$c" "$zsh/_$c"
    done
    rm -rf "$doc"
    rm -f "$to/$LIBDIR/libcdmpp.a" "$to/$LIBDIR/libcdmpp.so" "$to/$LIBDIR/$so" "$to/$LIBDIR/libcdmpp.so.$version" \
        "$to/$LIBDIR/pkgconfig/cdmpp.pc" "$to/include/cdmpp.h"
    rm -f "$to/lib/cdmpp/libcdmpp-wrap.so"
    for f in $(find models configs -type f) $(cd scripts && find python -type f -name '*.py*') scripts/get_data.sh scripts/data_sets.txt; do
        case $f in scripts/* | models/* | configs/* | python/*) rm -f "$to/share/cdmpp/$f" ;; esac
    done
    rm -rf "$to/share/cdmpp/python/__pycache__"
    if [ -d "$to/share/cdmpp" ]; then find "$to/share/cdmpp" -depth -type d -empty -delete; fi
    rmdir "$to/lib/cdmpp" 2>/dev/null || :
    # Files that this version did not install: yours, or of an earlier version.
    if [ -d "$to/share/cdmpp" ]; then find "$to/share/cdmpp" -type f | sed 's/^/uninstall: left, not installed by this version: /'; fi
    # Folders of a system stay, empty or not; those of a prefix of its own go when nothing else is in them.
    case $PREFIX in
    /usr | /usr/local) ;;
    *)
        for d in "$man" "$bash" "$zsh" "$doc" "$to/bin" "$to/include" "$to/lib" "$to/$LIBDIR/pkgconfig"; do
            while [ "$d" != "${DESTDIR:-}" ] && [ "$d" != / ] && { [ ! -d "$d" ] || rmdir "$d" 2>/dev/null; }; do d=$(dirname "$d"); done
        done ;;
    esac
    echo "uninstall: cdmpp is gone from $to; your own models and caches stay: ~/.local/share/cdmpp, ~/.cache/cdmpp"
    exit 0
fi

mkdir -p "$to/bin" "$to/$LIBDIR/pkgconfig" "$to/include" "$to/share/cdmpp" "$man" "$bash" "$zsh" "$doc"
for f in "$B"/cdmpp "$B"/cdmpp-*; do
    if [ ! -f "$f" ] || [ ! -x "$f" ]; then continue; fi
    c=$(basename "$f")
    install -m 755 "$f" "$to/bin/"
    install -m 644 "$B/man/$c.1" "$man/"
    install -m 644 "$B/bash/$c" "$bash/"
    install -m 644 "$B/zsh/_$c" "$zsh/"
done
install -m 644 cdmpp.h "$to/include/"
install -m 644 "$B/libcdmpp.a" "$to/$LIBDIR/"
install -m 755 "$B/libcdmpp.so" "$to/$LIBDIR/libcdmpp.so.$version"
ln -sf "libcdmpp.so.$version" "$to/$LIBDIR/$so"
ln -sf "$so" "$to/$LIBDIR/libcdmpp.so"
if [ -f "$B/libcdmpp-wrap.so" ]; then
    mkdir -p "$to/lib/cdmpp"
    install -m 755 "$B/libcdmpp-wrap.so" "$to/lib/cdmpp/"
fi
cp -R configs "$to/share/cdmpp/"
cp -R models "$to/share/cdmpp/"
mkdir -p "$to/share/cdmpp/python"
mkdir -p "$to/share/cdmpp/scripts"
install -m 755 scripts/get_data.sh "$to/share/cdmpp/scripts/"
install -m 644 scripts/data_sets.txt "$to/share/cdmpp/scripts/"
install -m 644 scripts/python/*.py "$to/share/cdmpp/python/"
mkdir -p "$to/share/cdmpp/python/cdmpp-stubs"
install -m 644 scripts/python/cdmpp-stubs/__init__.pyi "$to/share/cdmpp/python/cdmpp-stubs/"
cp -R README.md docs/* examples "$doc/"
install -m 644 LICENSE "$doc/copyright"
hdf5=hdf5
if pkg-config --exists hdf5-serial 2>/dev/null; then hdf5=hdf5-serial; fi
cat >"$to/$LIBDIR/pkgconfig/cdmpp.pc" <<EOF
prefix=$PREFIX
libdir=\${prefix}/$LIBDIR
includedir=\${prefix}/include

Name: cdmpp
Description: Predicts the latency of tensor programs
Version: $version
Requires.private: $hdf5 yaml-0.1 liblzma libzstd zlib
Libs: -L\${libdir} -lcdmpp
Libs.private: -lxgboost -lopenblas -llapacke -lprotobuf-c -lsqlite3 -lhwloc -lcrypto -ldl -lpthread -lm
Cflags: -I\${includedir}
EOF
if [ -z "${DESTDIR:-}" ] && [ "$(id -u)" = 0 ] && command -v ldconfig >/dev/null; then ldconfig; fi
echo "install: commands in $to/bin, library in $to/$LIBDIR, models and configurations in $to/share/cdmpp, pages in $doc"
case ":$PATH:" in
*":$PREFIX/bin:"*) echo "install: next: cdmpp" ;;
*) echo "install: next: export PATH=$PREFIX/bin:\$PATH; cdmpp" ;;
esac
