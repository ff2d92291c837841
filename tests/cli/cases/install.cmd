# make install: files, names, and a program built against the shared and the static library (cdmpp-mpi only where Open MPI is)
PREFIX=/opt/cd DESTDIR=$PWD/root "$ROOT/scripts/install.sh" | sed "s|$PWD/||g"
(cd root && find . -type f -o -type l | grep -v '/share/doc/\|/share/cdmpp/configs/[^d]\|cdmpp-mpi' | LC_ALL=C sort)
# each installed folder is in one of the Debian packages
for d in root/opt/cd/share/cdmpp/*; do cat "$ROOT"/scripts/debian/*.install | grep -qx "usr/share/cdmpp/${d##*/}" || case $d in */python) ;; *) echo "in no package: ${d##*/}" ;; esac; done
(cd root/opt/cd/share/doc/cdmpp && ls README.md copyright reference/config.md examples/zen5/zen5.tasks.json.xz)
# the installed commands find their configurations and devices from any folder, wherever the tree is
. "$T/lib.sh"
mkdir away && cd away && PATH=$OLDPWD/root/opt/cd/bin:$PATH
cdmpp-extract -q --tasks "$K" --out a.h5 "$HELD"
printf 'data: {files: a.h5}\nsplit: {kind: record}\ntrain: {rounds: 3}\n' >own.yaml
cdmpp-train own.yaml -j1 --out a.cdmpp 2>/dev/null | sed -n 's/:.*//p' | grep split
cdmpp-train configs/quickstart.yaml -j1 --set data.files=a.h5 --set train.rounds=3 --out b.cdmpp 2>&1 >/dev/null | sed -n "s|$(dirname "$PWD")|.|p"
cdmpp-train -q quickstart.yaml --set data.files=a.h5 --print-config >c.yaml; echo "status $?"
cdmpp-train nosuch.yaml
! command -v man >/dev/null || man --warnings -E UTF-8 -l -Tutf8 -Z ../root/opt/cd/share/man/man1/*.1 2>&1 >/dev/null
cd "$OLDPWD" && rm -r away
readelf -d root/opt/cd/lib/libcdmpp.so | sed -n 's/.*SONAME.*\[/soname [/p'
readelf -V root/opt/cd/lib/libcdmpp.so | sed -n 's/.*Name: \(CDMPP_[0-9.]*\)$/version \1/p'
cp "$ROOT/tests/golden/model_v1.cdmpp" m.cdmpp
cat >p.c <<'C'
#include <cdmpp.h>
#include <stdio.h>
int main(int argc, char **argv) { /* the latency of two programs of one and of no feature row */
    static float row[164];
    const int64_t row_ptr[] = {0, 1, 1};
    double seconds[2];
    cdmpp_status status[2];
    char text[512];
    cdmpp_err err = {0};
    cdmpp_model *m = NULL;
    cdmpp_context *c = NULL;
    const cdmpp_options o = {.size = sizeof o, .device = "zen5-avx512"};
    const cdmpp_batch b = {.size = sizeof b, .form = CDMPP_ROWS_F32, .n = 2, .data = row, .n_col = 164, .row_ptr = row_ptr};
    const cdmpp_result r = {.size = sizeof r, .seconds = seconds, .status = status};
    cdmpp_status st = cdmpp_model_load(argc > 1 ? argv[1] : "nosuch.cdmpp", &m, &err);
    if (!st) st = cdmpp_context_new(m, NULL, &o, &c, &err);
    if (!st) st = cdmpp_score(c, &b, &r, &err);
    if (st) puts(cdmpp_err_format(&err, text, sizeof text));
    else for (int i = 0; i < 2; i++) printf("%g %s\n", seconds[i], cdmpp_status_name(status[i]));
    cdmpp_context_free(c);
    cdmpp_model_free(m);
    return cdmpp_exit_code(st);
}
C
export PKG_CONFIG_SYSROOT_DIR= PKG_CONFIG_PATH=$PWD/root/opt/cd/lib/pkgconfig
at="--define-variable=prefix=$PWD/root/opt/cd"
cc p.c -o shared $(pkg-config $at --cflags --libs cdmpp) && export LD_LIBRARY_PATH=$PWD/root/opt/cd/lib
./shared; ./shared m.cdmpp; ldd shared | sed -n 's| => .*||; s/^[[:space:]]*\(libcdmpp.*\)/links \1/p'
rm root/opt/cd/lib/libcdmpp.so*
cc p.c -o static $(pkg-config $at --static --cflags --libs cdmpp) && ./static m.cdmpp
echo mine >root/opt/cd/share/cdmpp/models/mine.cdmpp
PREFIX=/opt/cd DESTDIR=$PWD/root "$ROOT/scripts/install.sh" -u | sed "s|$PWD/||"
find root -type f; rm root/opt/cd/share/cdmpp/models/mine.cdmpp
PREFIX=/opt/cd DESTDIR=$PWD/root "$ROOT/scripts/install.sh" -u >/dev/null
find root 2>&1
