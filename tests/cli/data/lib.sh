# What cases share: . "$T/lib.sh"
K=$ROOT/examples/zen5/zen5.tasks.json.xz
HELD=$ROOT/examples/zen5/held_out.json
LOGS=$ROOT/examples/zen5/measure_records

# a.h5 of all logs, and m.cdmpp of few rounds trained with it: for cases that need some model. The first case that asks has it
# trained, the others copy it (MADE: a folder that the cases of a run share). Training does not ask which processor this is.
small_model() {
    made=${MADE:-$PWD}/small
    if [ ! -d "$made" ]; then
        one=$(mktemp -d "$made.XXXXXX") || return 1
        cdmpp-extract -q --tasks "$K" --out "$one/a.h5" "$LOGS" || [ $? -eq 3 ] || return 1
        (cd "$one" && cdmpp-train "$ROOT/configs/quickstart.yaml" -q --set data.files=a.h5 --set 'data.devices=[]' --set train.rounds=10 --set model.members='[program]' --out m.cdmpp >/dev/null) || return 1
        mv -T "$one" "$made" 2>/dev/null || rm -r "$one" # another case was faster: it has the same
    fi
    cp "$made/a.h5" "$made/m.cdmpp" .
}

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

# kept NAME COMMAND...: what a command prints, its status and what it says, as one line: a name, how many lines, a digest. For outputs that are long and
# must not change. scripts/regress.sh shows what is different from another revision.
kept() {
    name=$1
    shift
    plain "$@" >kept.txt 2>kept.err
    echo "status $?" >>kept.txt
    cat kept.err >>kept.txt
    echo "$name: $(wc -l <kept.txt) lines, $(cksum <kept.txt | cut -d ' ' -f 1)"
    rm -f kept.txt kept.err
}
# The same of files that commands wrote.
kept_files() {
    for f; do echo "$f: $(wc -l <"$f") lines, $(sed -e "s|$ROOT/||g" "$f" | cksum | cut -d ' ' -f 1)"; done
}
# Numbers with a point or an exponent to three digits: what follows from a model's answers is a compiler's and a library's in its last digits, too.
rounded() {
    awk '{
        out = ""
        while (match($0, /[0-9]+([.][0-9]+)?(e[-+]?[0-9]+)?/)) {
            x = substr($0, RSTART, RLENGTH)
            out = out substr($0, 1, RSTART - 1)
            $0 = substr($0, RSTART + RLENGTH)
            word = out ~ /[A-Za-z0-9_]$/ || $0 ~ /^[A-Wa-wyzYZ_]/ # part of a name or of a digest
            out = out (x ~ /[.e]/ && !word ? sprintf("%.3g", x) : x)
        }
        print out $0 }' "$@"
}
# A target that says all that would else be asked of this machine.
CPU='llvm -num-cores=4 -mcpu=core-avx2'
