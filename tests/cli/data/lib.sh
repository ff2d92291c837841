# What cases share: . "$T/lib.sh"
K=$ROOT/examples/zen5/zen5.tasks.json.xz
HELD=$ROOT/examples/zen5/held_out.json
LOGS=$ROOT/examples/zen5/measure_records

# Run a command; take times, rates and paths of this checkout out of what it prints.
plain() {
    "$@" >out.txt 2>err.txt
    st=$?
    sed -e 's/"seconds": [0-9.]*/"seconds": T/; s/"records_per_s": [0-9.]*/"records_per_s": T/' \
        -e 's/"peak_rss_bytes": [0-9]*/"peak_rss_bytes": N/' -e "s|$ROOT/||g" out.txt
    sed -e 's/ in [0-9.]* s ([0-9.e+]* records\/s)/ in T s/' -e 's/stored_eof = [0-9]*/stored_eof = N/' -e "s|$ROOT/||g" err.txt >&2
    rm -f out.txt err.txt
    return $st
}
