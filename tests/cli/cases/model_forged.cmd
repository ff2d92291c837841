# models that somebody made by hand, with a right checksum: refused with the place, and XGBoost does not see them
. "$T/lib.sh"
exec 2>&1
head -n 1 "$HELD" >a.json
seal() { head -c -64 "$1" >body; { cat body; printf %s "$(sha256sum <body | cut -d ' ' -f 1)"; } >"$1"; }
ask() { cdmpp-predict --model f.cdmpp --tasks "$K" --device zen5-avx512 a.json >out.txt; echo "exit $?"; }
# forge KEY BYTES: what stands behind the first array of that name begins with these bytes
forge() {
    cp "$ROOT/tests/golden/model_v1.cdmpp" f.cdmpp
    at=$(grep -abo "$1" f.cdmpp | head -n 1 | cut -d : -f 1)
    printf "$2" | dd of=f.cdmpp bs=1 seek=$((at + ${#1} + $3)) conv=notrunc status=none
    seal f.cdmpp
    ask
}
echo "--- as it was"; cp "$ROOT/tests/golden/model_v1.cdmpp" f.cdmpp; seal f.cdmpp; cmp f.cdmpp "$ROOT/tests/golden/model_v1.cdmpp" && ask
echo "--- children that there are not, or that are their own parents"
forge left_children '\177\377\377\377' 13
forge right_children '\0\0\0\0' 13
forge parents '\0\0\0\5' 17
echo "--- columns, sides, values"
forge split_indices '\0\1\0\0' 13
forge default_left '\7' 13
forge split_type '\1' 13
forge split_conditions '\177\300\0\0' 13
echo "--- numbers that XGBoost divides by, and counts by"
forge num_parallel_tree '0' 10
forge num_trees '9' 10
forge num_nodes '8' 10
echo "--- words that it looks up"
forge reg:squarederror 'R' -16
forge gbtree_model_param 'x' -18
echo "--- lengths"
forge base_weights '\377' 5
