# two shards, merged: as many programs and rows as in one run
. "$T/lib.sh"
split -l 20 "$HELD" part_; for f in part_*; do mv "$f" "$f.json"; done
plain cdmpp-extract -q --json --tasks "$K" --out all.h5 part_*.json &&
plain cdmpp-extract -q --json --shard 1/2 --tasks "$K" --out a.h5 part_*.json &&
plain cdmpp-extract -q --json --shard 2/2 --tasks "$K" --out b.h5 part_*.json &&
plain cdmpp-extract -q --json --merge ab.h5 a.h5 b.h5
