# a compiler that says its version and compiles nothing: no program is written down as failed, by any command that measures; what one program does wrong still is
# Long: no sanitizer.
. "$T/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
exec 2>&1
cat >badcc <<'E'
#!/bin/sh
[ "$1" = --version ] && { echo badcc 1.0; exit 0; }
cat >/dev/null; echo "badcc: error: the licence has expired" >&2; exit 1
E
chmod +x badcc
net="--network squeezenet-1.1 --input-size 32"
said() { grep 'error:' | sed "s|$PWD/||g; s/^\(.\{200\}\).*/\1/"; }
lines() { if [ -s "$1" ]; then echo "$1: $(grep -c '"r"' "$1") lines"; else echo "$1: nothing"; fi; }
cdmpp-profile --list-tasks $net --target 'llvm -num-cores=1' --out-tasks t.json >/dev/null
cdmpp-profile draw --tasks t.json --trials 2 --seed 1 --out drawn.json -q
head -n 12 drawn.json >some.json
echo "--- a compiler that compiles nothing"
CC=./badcc cdmpp-profile records --tasks t.json --out r.json --no-check -q some.json 2>&1 | said; lines r.json
CC=./badcc cdmpp-tune $net --task '#0' --threads 1 --trials 4 --budget-ms 1 --tuner random --no-check --out u.json -q 2>&1 | said; lines u.json
CC=./badcc cdmpp-profile --ops $net --threads 1 --trials 1 --budget-ms 1 --out o.json -q 2>&1 | said; lines o.json
echo "--- the same log with one that works"
cdmpp-profile records --tasks t.json --out r.json --no-check --timeout 100 --build-timeout 100 --budget-ms 1 -q some.json | head -n 1; lines r.json
echo "--- instructions of another kind of processor"
other=aarch64; case $(uname -m) in aarch64) other=avx2 ;; esac
cdmpp-profile records --tasks t.json --isa $other --out x.json --no-check -q some.json 2>&1 | said | sed 's/error: .*/error: .../'; lines x.json
echo "--- texts that the compiler refuses are their own failure"
cat >pickycc <<'E'
#!/bin/sh
[ "$1" = --version ] && exec gcc --version
text=$(mktemp); cat >$text
if [ -n "$PICKY" ] && ! grep -q cd_machine_check $text; then echo "pickycc: error: this text is too long" >&2; rm $text; exit 1; fi
gcc "$@" <$text; st=$?; rm $text; exit $st
E
chmod +x pickycc
PICKY=1 CC=./pickycc cdmpp-profile records --tasks t.json --out s.json --no-check -q some.json >/dev/null; lines s.json
grep -c '"r": \[\[1e+10\], 2' s.json
