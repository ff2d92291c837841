# the same log plain, .gz, .xz and .zst gives the same data set
. "$T/lib.sh"
for p in '' .gz .xz .zst; do mkdir "d$p"; head -n 40 "$HELD" >"d$p/a.json"; done
gzip -n d.gz/a.json; xz d.xz/a.json; zstd -q --rm d.zst/a.json
for p in '' .gz .xz .zst; do
    plain cdmpp-extract -q --json --tasks "$K" --out "a$p.h5" "d$p/a.json$p" || exit
done
