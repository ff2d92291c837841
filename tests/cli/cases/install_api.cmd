# Every C example of docs/reference/api.md, compiled and run in a folder of its own against what make install puts: the short ones stand in the first program
. "$T/lib.sh"
PREFIX=$PWD/root "$ROOT/scripts/install.sh" >/dev/null
export PKG_CONFIG_SYSROOT_DIR= PKG_CONFIG_PATH=$PWD/root/lib/pkgconfig LD_LIBRARY_PATH=$PWD/root/lib
share=$(pkg-config --variable=prefix cdmpp)/share
mkdir away && cd away
awk '/^```c$/ { f = ++n ".c"; next } /^```/ { f = "" } f { print >f }' "$ROOT/docs/reference/api.md"
ls
# what a tuner has: one state of one row, as TVM packs it
cat >packed.h <<'C'
static struct { int n, size[3]; float rows, row[164]; } state = {1, {165, 0, 0}, 1, {0}};
const void *data = &state;
const size_t len = sizeof state, n = 1;
float scores[1];
C
program() { # N: the example as a program
    grep -q 'int main' "$1.c" && { cp "$1.c" "p$1.c"; return; }
    { sed '/what the sections below add stands here/q' 1.c; echo '{'; [ "$1" != 2 ] || cat packed.h; cat "$1.c"; echo '}'
        sed '1,/what the sections below add stands here/d' 1.c; } >"p$1.c"
}
awk -f "$T/llm_rows.awk" >rows.csv
for k in 1 2 3 4 5 6; do
    program $k
    cc -std=c11 -Wall -Wextra -Werror "p$k.c" -o "p$k" $(pkg-config --cflags --libs cdmpp) || continue
    case $k in
    2) set -- "$ROOT/tests/golden/model_v1.cdmpp" "$share/doc/cdmpp/examples/zen5/zen5.tasks.json.xz" ;; # rows alone
    6) set -- "$share/cdmpp/models/llm.cdmpp" rows.csv ;;
    *) set -- "$share/cdmpp/models/cpu.cdmpp" "$share/doc/cdmpp/examples/zen5/zen5.tasks.json.xz" ;;
    esac
    echo "--- $k"
    "./p$k" "$@" >out; echo "status $?"
    sed 's/[0-9.e+-]* s, [0-9.e-]* to [0-9.e-]*/S, L to H/; s/[0-9.e+-]* s\b/S/g; s/score [0-9.e+-]*/score X/; s/[0-9.]*x/Nx/g; s/-*nan to -*nan/no interval/; s/(\(model\|free\)): .*/\1/' out | sed 5q
done
./p1; echo "status $?"
