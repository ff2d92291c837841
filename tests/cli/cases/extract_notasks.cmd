. "$T/lib.sh"
head -n 1 "$HELD" >a.json
plain cdmpp-extract --tasks nosuch.pkl --out a.h5 a.json
