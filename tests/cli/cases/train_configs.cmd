# every configuration can be read; without its data it says what to fetch and exits with 4
checked=0
for f in "$ROOT"/configs/*.yaml; do
    n=$(basename "$f")
    if grep -q '^space:' "$f"; then
        cdmpp-train --autotune "$f" --print-config >c.yaml || echo "$n: --print-config failed"
    fi
    grep -q '^data:' "$f" || continue
    cdmpp-train --print-config "$f" >c.yaml || echo "$n: --print-config failed"
    cdmpp-train --print-config c.yaml | sed "s|$ROOT/||" | cmp -s - c.yaml || echo "$n: the printed one reads differently"
    cdmpp-train "$f" --set 'data.files=[nosuch.h5]' >out 2>err; st=$?
    sed -n '1p' err | grep -q "data.files: expected a data set, found no file 'nosuch.h5'" || echo "$n: no error line"
    # below it: where the data come from, and a command that makes each file of the configuration
    # (tables of operators are used as they are: the folder that holds them is made)
    sed '1d' err | grep -q 'cdmpp-extract\|make results\|git clone' || echo "$n: does not say how to get the data"
    for h in $(sed -n '/^data:/,/^[a-z]*:$/s/^  files: //p' c.yaml | tr -d '[],"'); do
        grep -q -e "--out $h" -e "ln -s .* $(expr "$h/" : '\(data/[a-z]*\)/')\$" -e '--out data/\$D.h5' -e 'build/results' err || echo "$n: does not say how to make $h"
    done
    # by Debian's own means, from an address of the list, and such that it goes on after a break
    ! grep -q 'pip3\|gdown' err || echo "$n: needs more than Debian's packages"
    for s in $(sed -n 's/.*get_data.sh \([a-z-]*\).*/\1/p' err); do "$ROOT/scripts/get_data.sh" --list | grep -q "^$s " || echo "$n: no set $s"; done
    for a in $(sed -n 's/.*download?id=\([^&]*\).*/\1/p' err); do grep -q "drive:$a$" "$ROOT/scripts/data_sets.txt" || echo "$n: another address"; done
    grep 'curl .*-o' err | grep -v -- '-C -' && echo "$n: does not go on"
    for s in $(sed -n 's/.*sh \(scripts\/[a-z_]*\.sh\).*/\1/p' err); do [ -f "$ROOT/$s" ] || echo "$n: no $s"; done
    [ $st -eq 4 ] || echo "$n: exit status $st"
    checked=$((checked + 1))
done
[ $checked -gt 20 ] && echo "all checked"
