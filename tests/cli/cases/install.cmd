# make install: files, names, and a program built against the shared and the static library (cdmpp-mpi only where Open MPI is)
PREFIX=/opt/cd DESTDIR=$PWD/root "$ROOT/scripts/install.sh" | sed "s|$PWD/||"
(cd root && find . -type f -o -type l | grep -v '/share/cdmpp/\|/cdmpp-mpi$' | LC_ALL=C sort)
readelf -d root/opt/cd/lib/libcdmpp.so | sed -n 's/.*SONAME.*\[/soname [/p'
cat >p.c <<'C'
#include <cdmpp.h>
#include <stdio.h>
int main(void) {
    cdmpp_err err = {0};
    cdmpp_model *m = NULL;
    char text[512];
    if (cdmpp_model_load("nosuch.cdmpp", &m, &err)) puts(cdmpp_err_format(&err, text, sizeof text));
    return 0;
}
C
export PKG_CONFIG_SYSROOT_DIR= PKG_CONFIG_PATH=$PWD/root/opt/cd/lib/pkgconfig
at="--define-variable=prefix=$PWD/root/opt/cd"
cc p.c -o shared $(pkg-config $at --cflags --libs cdmpp) && LD_LIBRARY_PATH=$PWD/root/opt/cd/lib ./shared
rm root/opt/cd/lib/libcdmpp.so*
cc p.c -o static $(pkg-config $at --static --cflags --libs cdmpp) && ./static
PREFIX=/opt/cd DESTDIR=$PWD/root "$ROOT/scripts/install.sh" -u
find root -type f -o -type l
