#!/bin/sh
# check_mpi.sh -- cdmpp-mpi with 1 to 4 ranks on this machine; part of check-long.
#
# The data set's digest and the model's bytes must be those of one process: members dealt
# out, one network trained by all, trees grown by all (XGBoost's collective), in memory and on disk, and after kill -9
# of a rank and the same command again. Ranks say what they have of the data: it must be divided. Nothing may wait for ever: each run has a limit.
# Prints "mpi: N passed, M failed".
set -u
cd "$(dirname "$0")/.."
root=$PWD B=${B:-build/${MODE:-release}}
case $B in /*) ;; *) B=$root/$B ;; esac
work=$(mktemp -d) pass=0 fail=0
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export OMPI_MCA_btl_vader_single_copy_mechanism=none OMP_NUM_THREADS=1
ok() { # what, command...
    what=$1; shift
    if "$@"; then pass=$((pass + 1)); else fail=$((fail + 1)); echo "FAIL: $what"; fi
}
ranks() { # n, command...
    n=$1; shift
    root_ok=
    [ "$(id -u)" != 0 ] || root_ok=--allow-run-as-root
    # shellcheck disable=SC2086
    exec timeout -k 5 "${RUN_S:-240}" mpirun $root_ok --oversubscribe -n "$n" "$B/cdmpp-mpi" "$@"
}
mpi() { (ranks "$@") >out.txt 2>err.txt; }
same() { cmp -s "$1" "$2"; }

# ---- what it says about itself: once, by rank 0
mpi 2 --version
ok "--version" test "$(sed 1q out.txt | cut -d ' ' -f 1,2)$(grep -c '^cdmpp-mpi' out.txt)$(grep -c '^Open MPI [0-9]' out.txt)" = 'cdmpp-mpi (cdmpp)11'
mpi 2 train --help
ok "train --help" test "$(grep -c 'checkpoint=DIR' out.txt)$(grep -c '^ *--autotune' out.txt)" = 10
mpi 2 extract --task t
ok "a wrong option: exit status 2" test $? -eq 2
ok "and it is told once" test "$(grep -c "did you mean '--tasks'" err.txt)" -eq 1
mpi 2 frobnicate
ok "a wrong command: exit status 2" test $? -eq 2
"$B/cdmpp-mpi" --help=bash >script
ok "completion" test "$(bash -c '. ./script; COMP_WORDS=(cdmpp-mpi train --check); COMP_CWORD=2; _cdmpp_mpi; echo "${COMPREPLY[@]}"')" = --checkpoint

# ---- extraction
tasks=$root/examples/zen5/zen5.tasks.json.xz
xz -dc "$root"/examples/zen5/measure_records/zen5-avx512/records.json.xz >all.json
split -n l/7 all.json part_ && for f in part_*; do mv "$f" "$f.json"; done
echo '{"not": "a record"}' >>part_ad.json
"$B/cdmpp-extract" -q --tasks "$tasks" --out d.h5 part_*.json 2>/dev/null
info() { # the digest as a model trained on the file names it
    "$B/cdmpp-train" "$root/configs/quickstart.yaml" -q --set data.files="$1" --set train.rounds=1 --out i.cdmpp >/dev/null &&
        "$B/cdmpp-predict" --model i.cdmpp --info --json | tr ',{' '\n\n' | sed -n 's/.*"content_digest": *"\([0-9a-f]*\)".*/\1/p'
}
want=$(info d.h5)
ok "a digest" test ${#want} -eq 64
for n in 1 2 4; do
    mpi $n extract -q --tasks "$tasks" --out e$n.h5 part_*.json
    ok "extract, $n ranks: exit status 3 for a bad line" test $? -eq 3
    ok "extract, $n ranks: digest" test "$(info e$n.h5)" = "$want"
    ok "extract, $n ranks: skipped lines" same d.h5.skipped.tsv e$n.h5.skipped.tsv
    ok "extract, $n ranks: nothing is left" test -z "$(ls -d e$n.h5.rank* 2>/dev/null)"
done
mpi 2 extract -q --tasks "$tasks" --out f.h5 nosuch.json
ok "extract: a missing file ends all ranks" test $? -ne 0
ok "extract: and is named once" test "$(grep -c nosuch.json err.txt)" -eq 1

# ---- training: members dealt out, one network by all
config() { # members, further keys
    cat <<END
data: {files: [d.h5]}
device: {file: $root/configs/devices.yaml}
filter: {max_per_task: 6}
split: {kind: record, seed: 1}
$1
END
}
config 'model: {members: [rows, program, mlp, transformer], folds: 2}
train: {rounds: 20}
fit: {epochs: 12, batch: 32}' >dealt.yaml
config 'model: {members: [program, transformer]}
train: {rounds: 20}
net: {dropout: 0.1}
fit: {epochs: 12, batch: 32, slices: 4}' >shared.yaml
config 'model: {members: [rows, program], folds: 2}
train: {rounds: 20, together: true, subsample: 1}' >trees.yaml
sed 's/rounds: 20/&, memory: 1/; s/subsample: 1/subsample: 0.8/' trees.yaml >disk.yaml
sed 's/rounds: 20/&, memory: 1/' dealt.yaml >dealt_disk.yaml
for c in dealt shared trees disk dealt_disk; do
    "$B/cdmpp-train" -j1 $c.yaml --out $c.cdmpp >$c.txt 2>/dev/null
    for n in 1 2 3 4; do
        mpi $n train -j1 $c.yaml --out $c$n.cdmpp
        ok "$c, $n ranks: model" same $c.cdmpp $c$n.cdmpp
        sed "s/$c$n/$c/" out.txt >got.txt
        ok "$c, $n ranks: figures" same $c.txt got.txt
    done
done
# What each rank has: rank 0 alone reads the data, and the rows of trees are divided. ROWS BYTES WHOLE a line
shares() { sed -n 's/.*rank [0-9]*: \([0-9]*\) matrix rows of trees, \([0-9]*\) of \([0-9]*\) bytes of the data set read to '"$1"'$/\1 \2 \3/p' err.txt; }
for c in dealt:memory trees:memory disk:disk; do
    mpi 1 train -v -j1 ${c%:*}.yaml --out x.cdmpp
    whole=$(shares ${c#*:} | awk '{ n += $1 } END { print n + 0 }')
    ok "$c: one rank has rows" test "$whole" -gt 0
    for n in 2 3; do
        mpi $n train -v -j1 ${c%:*}.yaml --out x.cdmpp
        ok "$c, $n ranks: each says what it has" test "$(shares ${c#*:} | wc -l)" -eq $n
        ok "$c, $n ranks: one has read the data" test "$(shares ${c#*:} | awk '$3 > 0 && $2 == (NR == 1 ? $3 : 0)' | wc -l)" -eq $n
        ok "$c, $n ranks: rows are divided" test "$(shares ${c#*:} | awk -v whole="$whole" -v n=$n '{ all += $1; if ($1 > most) most = $1 } END { print all == whole && most < 1.5 * whole / n }')" = 1
    done
done
# Grown by all or by one: the same trees, as long as every row is in every tree.
"$B/cdmpp-train" -j1 trees.yaml --set train.together=false --out alone.cdmpp >alone.txt 2>/dev/null
figures() { grep -v '^model' "$1"; }
ok "trees: the figures of one process" test "$(figures trees.txt)" = "$(figures alone.txt)"
"$B/cdmpp-train" -q -j2 trees.yaml --set train.subsample=0.7 --out drawn.cdmpp >drawn.txt
mpi 3 train -q -j1 trees.yaml --set train.subsample=0.7 --out drawn3.cdmpp
ok "trees: rows are drawn alike by 3 ranks" same drawn.cdmpp drawn3.cdmpp
mpi 8 train -q -j1 trees.yaml --set model.folds=1 --set split.valid=0.001 --out x.cdmpp
ok "trees: fewer programs than ranks end all" test $? -eq 4
ok "trees: and it is told once" test "$(grep -c '8 ranks for [0-9]* programs' err.txt)" -eq 1
mpi 2 train -q -j1 dealt.yaml --set data.files=nosuch.h5 --out x.cdmpp
ok "train: missing data ends all ranks" test $? -ne 0
mpi 2 train -q -j1 shared.yaml --set fit.loss=1mse+1cmd --out x.cdmpp
ok "train: what slices cannot do" grep -q 'fit.*\|slices' err.txt

# ---- a rank is killed
# mpirun is the child of timeout, the ranks are mpirun's.
children() { ps -o pid= --ppid "$1" | awk '{ print $1 }'; }
state() { ls -l --time-style=full-iso "$1" 2>/dev/null | grep -v tmp | cksum; }
for c in dealt shared trees disk; do
    for victim in 1 2; do
        before=$(state k$c)
        (ranks 2 train -q -j1 $c.yaml --checkpoint k$c --out k$c.cdmpp) >out.txt 2>err.txt &
        p=$!
        while [ "$(state k$c)" = "$before" ] && kill -0 $p 2>/dev/null; do sleep 0.02; done
        rank=$(children "$(children $p)" | sed -n "${victim}p")
        [ -z "$rank" ] || kill -9 "$rank" 2>/dev/null
        wait $p
        ok "$c: a killed rank ends the run" test $? -ne 0
        ok "$c: no model" test ! -e k$c.cdmpp
    done
    ok "$c: something was kept" test -n "$(ls k$c)"
    mpi 4 train -q -j1 $c.yaml --checkpoint k$c --out k$c.cdmpp
    ok "$c: the same command goes on" test $? -eq 0
    ok "$c: to the same bytes" same $c.cdmpp k$c.cdmpp
done
# In the middle of a tree: the others must not wait for it.
(ranks 3 train -q -j1 trees.yaml --set train.rounds=100000 --set train.early_stop=0 --out x.cdmpp) >out.txt 2>err.txt &
p=$!
sleep 4
rank=$(children "$(children $p)" | sed -n 2p)
t0=$(date +%s)
ok "trees: three ranks are at work" kill -9 "$rank"
wait $p
ok "trees: a killed rank ends all" test $? -ne 0
ok "trees: at once" test $(($(date +%s) - t0)) -le 20
ok "trees: with a message" grep -qi 'rank' err.txt
echo "mpi: $pass passed, $fail failed"
[ $fail -eq 0 ] && [ $pass -gt 0 ]
