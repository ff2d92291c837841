# a model corrected for a board that workers measure: a connection that is lost, the same command, who it is; what does not go together
# Long: no sanitizer, one processor.
. "$T/lib.sh"
export XDG_CACHE_HOME=$PWD/cache CC=gcc
unset CDMPP_DEFAULT_MODEL
exec 2>&1
small_model || exit
# what says that it is a board, and makes its times up of the text of the program; with a file `weak` it goes after three answers and does not come back before `gone` does
cat >board.sh <<'X'
[ -e gone ] && exit 1
echo "{\"hello\":\"cdmpp-worker\",\"protocol\":1,\"version\":\"x\",\"device\":\"Board 9\",\"model\":\"${NAME-board-9}\",\"isa\":\"aarch64\",\"cpus\":3}"
n=0
while read -r l; do
    case $l in *lease*) ;; *) continue ;; esac
    lease=${l#*:} lease=${lease%%,*}
    if [ -e weak ] && [ $((n += 1)) -gt 3 ]; then touch gone; exit 1; fi
    s=$(printf '%s' "${l#*record}" | cksum | cut -c 1-2)
    echo "{\"lease\":$lease,\"error_no\":0,\"costs\":[0.00$s],\"total_s\":1,\"timestamp\":1700000000}"
done
X
args="--trials 18 --seconds 3600 --network squeezenet-1.1 --input-size 32 --cost-model m.cdmpp --out b.cdmpp"
board() { cdmpp-tune calibrate --host pi@board --transport 'sh ./board.sh "$@"' $args "$@"; }
told() { grep -o '"\(measured_now\|repeated_now\|programs\|measured\|pairs\|device\|machine\|cpu\|out\|records\)":[^,}]*' | tr '\n' ' '; echo; }
echo "--- nobody describes it"
board -q; echo "exit $?"
echo "--- the connection is lost, and the same command goes on"
touch weak
board -q --device zen5-avx512 >/dev/null 2>err; echo "exit $?"; grep -c error: err; ls b.cdmpp
wc -l <b.records.json; rm weak gone
board -q --device zen5-avx512 --force --json | told
cut -d '"' -f 7- b.records.json | grep -o 'llvm -num-cores=[0-9]* -model=[a-z0-9-]*' | sort | uniq -c
echo "--- it answers by its name"
cdmpp-replay --network squeezenet-1.1 --input-size 32 --cost-model b.cdmpp --device board-9 --trials 1 2>/dev/null | sed -n '3s/^\([^ ]*\) *\([^ ]*\) .*/\1 \2/p'
ls "$XDG_DATA_HOME" 2>&1 | sed "s|$XDG_DATA_HOME|DATA|"
echo "--- another board does not go on with its log"
NAME=board-8 board -q --device zen5-avx512; echo "exit $?"
NAME= board -q --device zen5-avx512; echo "exit $?"
NAME= board -q --device zen5-avx512 --target 'llvm -model=own -num-cores=1' --out own.cdmpp --force --json | told
echo "--- a worker of this machine"
cdmpp-tune calibrate --host here --transport 'shift 2; exec cdmpp-profile --worker "$@"' $args --timeout 100 --build-timeout 100 --device zen5-avx512 --out w.cdmpp --force --json -q | told | sed 's/"\(cpu\|machine\)":"[^"]*"/"\1":X/g'
grep -c '"r": \[\[[0-9.e, -]*\], 0,' w.records.json
echo "--- what does not go together"
cdmpp-tune calibrate --host x; echo "exit $?"
sed 's/\\"isa[^,]*,//' board.sh >mute.sh
cdmpp-tune calibrate --host x --transport 'sh ./mute.sh "$@"' $args -q --device zen5-avx512; echo "exit $?"
cdmpp-tune calibrate --host x --out o --target cuda; echo "exit $?"
cdmpp-tune calibrate --host x --out o --run-networks lstm; echo "exit $?"
cdmpp-tune calibrate --host x --out o --records r --tasks t; echo "exit $?"
