# one program from several records; a run that is slow as a whole is left out, with a line; what is refused
. "$T/lib.sh"
mkdir one two three
head -n 40 "$HELD" >one/a.json
sed -n '20,60p' "$HELD" >two/a.json
# twice as long
head -n 45 "$HELD" | awk '{
    at = index($0, "\"r\": [[") + 7
    end = at + index(substr($0, at), "]") - 2
    n = split(substr($0, at, end - at + 1), t, ", ")
    out = substr($0, 1, at - 1) 2 * t[1]
    for (i = 2; i <= n; i++) out = out ", " 2 * t[i]
    print out substr($0, end + 1)
}' >three/a.json
sed 's/ -model=[^ "]*//' "$HELD" | head -n 3 >unnamed.json
plain cdmpp-extract -q --ids --tasks "$K" --out a.h5 one two
plain cdmpp-extract -q --ids --tasks "$K" --out b.h5 three
plain cdmpp-extract --json --merge-copies once.h5 a.h5 b.h5; echo "status $?"
plain cdmpp-extract --merge-copies all.h5 --slow-run 0 a.h5 b.h5; echo "status $?"
# the device of a target that names none
plain cdmpp-extract -q --ids --device zen --tasks "$K" --out named.h5 unnamed.json
strings -n 3 named.h5 | grep -cx 'zen'
plain cdmpp-extract -q --tasks "$K" --out c.h5 one
plain cdmpp-extract -q --merge-copies d.h5 c.h5; echo "status $?"
plain cdmpp-extract -q --merge-copies d.h5 once.h5; echo "status $?"
plain cdmpp-extract -q --merge d.h5 a.h5 c.h5; echo "status $?"
plain cdmpp-extract -q --merge-copies d.h5; echo "status $?"
plain cdmpp-extract -q --merge-copies d.h5 --slow-run 0.5 a.h5; echo "status $?"
plain cdmpp-extract -q --merge d.h5 --slow-run 2 a.h5; echo "status $?"
ls
