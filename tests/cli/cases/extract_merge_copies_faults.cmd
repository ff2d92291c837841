# no room, and what a killed run left: an error that names the file, no half file, and the next run gives what an undisturbed one gives
. "$T/lib.sh"
cdmpp-extract -q --ids --tasks "$K" --out a.h5 "$LOGS"
rm -f a.h5.skipped.tsv
cdmpp-extract -q --merge-copies whole.h5 a.h5 a.h5
(ulimit -f 400; plain cdmpp-extract -q --merge-copies b.h5 a.h5 a.h5 2>&1 | sed 's|b.h5.partial/[a-z.]*|b.h5.partial/...|')
ls
mkdir c.h5.partial
head -c 100000 whole.h5 >c.h5.partial/data.h5
head -c 3000 whole.h5 >c.h5.partial/journal
cdmpp-extract -q --merge-copies c.h5 a.h5 a.h5
echo "status $?"
cmp whole.h5 c.h5 && ls
