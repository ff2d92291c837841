# every bad line is counted, named and skipped; exit status 3
. "$T/lib.sh"
{
    sed -n 1p "$HELD"
    sed -n '2s/"SP"/"SPX"/p' "$HELD"
    sed -n '3s/.\{60\}$//p' "$HELD"
    sed -n '4s/"i"/"j"/p' "$HELD"
    printf '\377\376{"i"\n'
    echo '# a comment and an empty line are no records'
    echo
    sed -n '1s/\[\\"[0-9a-f]\{8\}/[\\"00000000/p' "$HELD"
    sed -n '1s/"r": \[\[[0-9.e-]*/"r": [[NaN/p' "$HELD"
    sed -n '1s/"r": \[\[[0-9.e-]*/"r": [[-1/p' "$HELD"
    sed -n '1s/"v0.6"/"v0.9"/p' "$HELD"
    sed -n '2s/\["SP", [0-9]*/["SP", 77/p' "$HELD"
    sed -n '1s/"r": .*/"r": [[1e+10], 2, 10.2, 1795228432], "v": "v0.6"}/p' "$HELD"
    sed -n 2p "$HELD"
} >a.json
plain cdmpp-extract --json --tasks "$K" --out a.h5 a.json
st=$?; cat a.h5.skipped.tsv
# a name of 240 characters in a folder: the whole path is in the list
long=$(printf 'x%.0s' $(seq 235)).json
mkdir a_folder_with_a_long_name_of_more_than_forty_letters && sed -n 5p a.json >"a_folder_with_a_long_name_of_more_than_forty_letters/$long"
sed -n 2p "$HELD" >b.json
plain cdmpp-extract -q --tasks "$K" --out b.h5 a_folder_with_a_long_name_of_more_than_forty_letters b.json
[ "$(cut -f1 b.h5.skipped.tsv)" = "a_folder_with_a_long_name_of_more_than_forty_letters/$long" ] && echo "the long name in full"
exit $st
