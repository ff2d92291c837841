# --help is a screen with examples; every option that --help=all shows is in the manual page and completes; the page has no warnings
command -v groff >/dev/null || groff() { :; } # then the page is not checked
for c in profile extract train replay partition predict; do
    cdmpp-$c --help=man >page; cdmpp-$c --help=bash >script; cdmpp-$c --help=zsh >zscript
    cdmpp-$c --help=all >help; cdmpp-$c --help >screen; cmp -s screen - <<X || echo "$c: -h differs"
$(cdmpp-$c -h)
X
    [ "$(wc -l <screen)" -le 40 ] || echo "$c: --help has $(wc -l <screen) lines"
    [ "$(grep -c '^  # ' screen)" -eq 3 ] || echo "$c: --help has no three examples"
    sed -n '/^The usual/,/^$/s/^.* --\([a-z-]*\).*/\1/p' screen >usual; echo "$c: $(wc -l <usual) usual options"
    awk 'length > 79 { print "too wide: " $0 }' screen
    awk 'length > 79 { print "too wide: " $0 }' help
    groff -ww -man -Tutf8 page 2>&1 >/dev/null
    options=$(sed -n 's/^  \(-[a-zA-Z],\|   \) --\([a-z-]*\).*/\2/p' help)
    for o in $options; do
        grep -q "^\(.fB.*, \)\?.fB.-.-$(echo "$o" | sed 's/-/.-/g').fR" page || echo "$c --$o: not in the manual page"
        bash -c ". ./script; COMP_WORDS=(cdmpp-$c --$o); COMP_CWORD=1; _cdmpp_$c; printf '%s\n' \"\${COMPREPLY[@]}\"" | grep -qx -e "--$o" || echo "$c --$o: does not complete"
        grep -q -e "--$o[=[-]" zscript || echo "$c --$o: not in the completion of zsh"
    done
    ! command -v zsh >/dev/null || zsh -n zscript
    for code in 0 1 2 3 4 5 6 130; do grep -q "^.fB$code.fR" page || echo "$c: exit status $code is not in the page"; done
    for part in NAME SYNOPSIS DESCRIPTION OPTIONS "EXIT STATUS" ENVIRONMENT EXAMPLES "SEE ALSO"; do grep -q "^.SH $part" page || echo "$c: no $part"; done
    [ $c = profile ] || [ $c = replay ] || [ $c = partition ] || echo "$c: $(echo "$options" | wc -l) options"
    # a sanitizer's build links more than it needs
    cdmpp-$c --version | sed 's/ [0-9][0-9.]*$/ N/' >version
    sed 1q version
    case $c in extract) want="HDF5 zstd liblzma zlib" ;; profile) want="zstd liblzma zlib" ;; *) want='XGBoost OpenBLAS libyaml zstd liblzma zlib' ;; esac
    for l in $want; do grep -qx "$l N" version || echo "$c: no version of $l"; done
done
for v in link curve correlate equilibrium together pack qos; do n=$(cdmpp-partition $v --help | wc -l); [ "$n" -le 40 ] || echo "partition $v: $n lines"; done
cdmpp-extract --version --json | sed 's/"[0-9][0-9.]*"/N/g; s/.*\("version".*"libraries":{\).*\("HDF5":N\).*\("zlib":N.*\)/\1 \2 \3/'
bash -c '. ./script; COMP_WORDS=(cdmpp-predict --cost); COMP_CWORD=1; _cdmpp_predict; echo "${COMPREPLY[@]}"'
cdmpp-train --help >/dev/full; echo "status $?"
