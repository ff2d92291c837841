# what is no data set of ours, or one that was cut short
. "$T/lib.sh"
cdmpp-extract -q --tasks "$K" --out a.h5 "$HELD"
head -c 20000 a.h5 >cut.h5
echo hello >text.h5
plain cdmpp-extract -q --merge b.h5 a.h5 cut.h5; echo "status $?"
plain cdmpp-extract -q --merge b.h5 a.h5 text.h5; echo "status $?"
# a log without a record makes no data set
: >empty.json
plain cdmpp-extract -q --tasks "$K" --out e.h5 empty.json; echo "status $?"
plain cdmpp-extract -q --merge b.h5; echo "status $?"
ls
