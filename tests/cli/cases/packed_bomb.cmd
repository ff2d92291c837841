# a small packed file that stands for a large one ends with its bound, as a task file, a log, a trace, a table and a network
. "$T/lib.sh"
for p in 'gzip -n' xz\ -0 'zstd -q -c'; do head -c 120000000 /dev/zero | tr '\0' 0 | $p >"bomb"; mv bomb "bomb.${p%% *}"; done
for f in bomb.gzip bomb.xz bomb.zstd; do
    echo "--- $f"
    { cdmpp-extract -q --tasks $f --out a.h5 "$HELD"
        echo "exit $?"
        cdmpp-replay -q --graph $f --replay-given
        echo "exit $?"
        cdmpp-partition curve $f
        echo "exit $?"; } 2>&1 | sed -E 's/: [0-9]+ bytes of/: N bytes of/; s/more than [0-9]+ bytes/more than N bytes/'
done
