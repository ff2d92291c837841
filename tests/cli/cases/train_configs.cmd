# every configuration can be read; without its data it says what to fetch and exits with 4
checked=0
for f in "$ROOT"/configs/*.yaml; do
    n=$(basename "$f")
    if grep -q '^space:' "$f"; then
        cdmpp-train --autotune "$f" --print-config >c.yaml || echo "$n: --print-config failed"
    fi
    grep -q '^data:\|^base:' "$f" || continue
    cdmpp-train --print-config "$f" >c.yaml || echo "$n: --print-config failed"
    cdmpp-train --print-config c.yaml | sed "s|$ROOT/||" | cmp -s - c.yaml || echo "$n: the printed one reads differently"
    cdmpp-train "$f" --set 'data.files=[nosuch.h5]' >out 2>err; st=$?
    sed -n '1p' err | grep -q "data.files: expected a data set, found no file 'nosuch.h5'" || echo "$n: no error line"
    # below it: where the data come from, and a command that makes each file of the configuration
    # (tables of operators are used as they are: the folder that holds them is made),
    # or that the user has to measure, and where the table goes
    sed '1d' err | grep -q 'cdmpp-extract\|make results\|git clone\|your own measurements' || echo "$n: does not say how to get the data"
    for h in $(sed -n '/^data:/,/^[a-z]*:$/s/^  files: //p' c.yaml | tr -d '[],"'); do
        grep -q -e "--out $h" -e "ln -s .* $(expr "$h/" : '\(data/[a-z]*\)/')\$" -e '--out data/\$D.h5' -e 'build/results' -e "your own measurements, in $h[,:]" err || echo "$n: does not say how to make $h"
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
[ $checked -gt 35 ] && echo "all checked"
# every device of CDMPP's figures has one, and is a target; what is behind the colon is its name in the records
for n in t4 cdmpp-v100:v100 a100 tenset-k80:k80 p100 e5-2673 epyc-7452 graviton2; do
    cdmpp-train "$ROOT/configs/${n%:*}.yaml" --print-config | sed -n 's/^  files: \[\(.*\)\]$/\1/p' >file
    cdmpp-train "$ROOT/configs/cross-device-${n%:*}.yaml" --print-config >cross.yaml
    grep '^  files:' cross.yaml | grep -qF "$(cat file)" || echo "$n: $(cat file) is not among the data of the target"
    grep -q "^  test_names: \[\"${n#*:}\"\]$" cross.yaml || echo "$n is not the target"
done
for n in hl-100 cross-device-hl-100; do cdmpp-train "$ROOT/configs/$n.yaml" --print-config | grep -q '^  files:.*data/hl-100"' || echo "$n: no tables of it"; done
