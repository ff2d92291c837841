# kill -9 again and again: with --checkpoint the same command goes on, to the same bytes
. "$T/lib.sh"
cdmpp-extract -q --tasks "$K" --out a.h5 "$HELD" || exit
set -- "$ROOT/configs/quickstart.yaml" -q -j1 --set data.files=a.h5 --set model.members=[rows,mlp,transformer] --set model.folds=2 \
    --set train.rounds=20 --set fit.batch=16 --set fit.epochs=110
train() { cdmpp-train "$@" >/dev/null; }
state() { ls -lt --time-style=full-iso k 2>/dev/null | grep -v tmp | cksum; }
train "$@" --out whole.cdmpp
n=0 st=137
while [ $st -eq 137 ]; do # until the folder has changed, and a little longer
    before=$(state)
    cdmpp-train "$@" --checkpoint k --out a.cdmpp >/dev/null 2>err.txt &
    p=$!
    while [ "$(state)" = "$before" ] && kill -0 $p 2>/dev/null; do sleep 0.02; done
    sleep "0.0$((n * 3 % 10))"
    kill -9 $p 2>/dev/null
    wait $p 2>/dev/null
    st=$?
    n=$((n + 1))
    [ ! -e a.cdmpp ] || cmp whole.cdmpp a.cdmpp
done
echo "status $st"; cat err.txt
[ $n -gt 3 ] && echo "killed again and again"
cmp whole.cdmpp a.cdmpp && echo same model
ls k
train "$@" --checkpoint k --out b.cdmpp && cmp whole.cdmpp b.cdmpp && echo same model
# another configuration, a damaged file, a folder that is none
train "$@" --checkpoint k --set split.seed=2 --out c.cdmpp 2>err.txt; echo "status $?"
sed 's/digest [0-9a-f]*/digest D/; s/found [0-9a-f]*/found D/' err.txt
printf x | dd of=k/rows-0.member bs=1 seek=5000 conv=notrunc 2>/dev/null
train "$@" --checkpoint k --out c.cdmpp 2>err.txt; echo "status $?"
sed 's/[0-9a-f]\{12\}\.\.\./D/g' err.txt
train "$@" --checkpoint a.h5 --out c.cdmpp; echo "status $?"
