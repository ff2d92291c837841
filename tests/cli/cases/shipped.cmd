# the models that come with the program: each is the file that provenance.json describes, and is of this program's features
for m in cpu gpu llm; do
    said=$(sed -n "/^ \"$m\": {/,/^ }/s/.*\"sha256\": \"\([0-9a-f]*\)\".*/\1/p" "$ROOT/models/provenance.json")
    [ "$said" = "$(sha256sum <"$ROOT/models/$m.cdmpp" | cut -d ' ' -f 1)" ] && echo "$m: as described"
    bytes=$(sed -n "/^ \"$m\": {/,/^ }/s/.*\"bytes\": \([0-9]*\),/\1/p" "$ROOT/models/provenance.json")
    [ "$bytes" = "$(wc -c <"$ROOT/models/$m.cdmpp")" ] && echo "$m: as large"
    cdmpp-predict --cost-model "$ROOT/models/$m.cdmpp" --info >info.txt && echo "$m: read"
done
[ "$(cat "$ROOT"/models/*.cdmpp | wc -c)" -le 20000000 ] && echo "at most 20 MB together"
