# The manual's example of the C calls for operators of language models, compiled against the shared library.
. "$T/lib.sh"
awk -f "$T/llm_rows.awk" >all.csv
sed -n '2,40p' all.csv | awk -F, -v OFS=, '{ $NF *= 1 + 0.01 * (NR % 10); print }' >>all.csv
printf 'data: {kind: llm_operators, files: [all.csv]}\noperators: {rounds: 20, eta: 0.3, max_depth: 4}\n' >llm.yaml
cdmpp-train llm.yaml --quiet --out llm.cdmpp --set device.file="$ROOT/configs/devices.yaml" >/dev/null
sed -n '/^```c/,/^```/p' "$ROOT/docs/reference/api.md" | sed -n '/operators.c:/,/^```/p' | sed '/^```/d' >operators.c
ln -s "$B/libcdmpp.so" libcdmpp.so.0
cc -std=c11 -Wall -Wextra -Werror -I"$ROOT" operators.c -o operators libcdmpp.so.0
here=$PWD && cd "$ROOT" && LD_LIBRARY_PATH=$here "$here/operators" "$here/llm.cdmpp" "$here/all.csv" | sed 's/[0-9.e-]* s, [0-9.e-]* to [0-9.e-]*/S, L to H/'
LD_LIBRARY_PATH=$here "$here/operators" none.cdmpp; echo "status $?"
