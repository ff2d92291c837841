#!/bin/sh
# regress.sh -- do the commands still answer what they answered before?
#
#   regress.sh run BUILD OUT        run the lines of regress.list with the commands in BUILD
#   regress.sh compare OLD NEW      tell which lines answered otherwise in two such runs
#   regress.sh against [REV]        build REV in build/regress, run it and this tree, compare
#
# OUT/digests has a line for each command line: name, exit status, SHA-256 of what it printed and
# wrote. OUT/NAME has that itself: text without the times and paths of this run, of anything else
# the digest. Each line runs in a folder of its own; it reads what an earlier one wrote as ../NAME/FILE.
# Files in folders called "in", caches and stores are not looked at. Words that were renamed on
# purpose stand in regress.renames.
#
# REV is $REGRESS_REV, else origin/main, else the commit before this one. Lines that need reference
# data are skipped where $CDMPP_DATA (default: ../shared/data beside the repository) lacks them.
# ONLY='name...' runs just these and what they read, KEEP=1 leaves the folders in which they ran.
set -u
here=$(cd "$(dirname "$0")" && pwd)
LIST=${LIST:-$here/regress.list}
RENAMES=${RENAMES:-$here/regress.renames}
# what would change the answers
unset MAKEFLAGS MFLAGS CDMPP_MODELS CDMPP_LARGE
export LC_ALL=C TZ=UTC CDMPP_DEFAULT_MODEL=
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM

die() { echo "regress: $*" >&2; exit 2; }
absolute() { (cd "$1" 2>/dev/null && pwd) || die "no folder $1"; }
# The tree that a build is of, and where the reference data are for it.
tree_of() { git -C "$1" rev-parse --show-toplevel 2>/dev/null || absolute "$1/../.."; }
data_of() {
    common=$(git -C "$1" rev-parse --path-format=absolute --git-common-dir 2>/dev/null) || common=$1/.git
    for d in "$1/../shared/data" "${common%/.git}/../shared/data"; do
        [ ! -d "$d" ] || { absolute "$d"; return; }
    done
    echo /nowhere
}

# The list without comments, a command a line: lines that end in \ go on.
lines() { sed -e '/^ *#/d' -e '/^ *$/d' "$LIST" | sed -e ':a' -e '/\\$/{N;s/\\\n */ /;ba' -e '}'; }
commands() { lines | grep -v '^[A-Z_0-9]*='; }
marked_new() { commands | grep -q "^+$1[[:space:]]"; }

# regress.renames as a script for sed: whole words, and lines that go.
rename_script() {
    tab=$(printf '\t')
    grep -v '^#' "$RENAMES" | sed -e '/^$/d' -e 's/[][\\.*^$|]/\\&/g' -e 't begin' -e ':begin' \
        -e "s/^!\(.*\)/\\\\|\1|d/; t" -e "s/^\([A-Za-z0-9_][^$tab]*\)$tab\(.*\)/s|\\\\<\1\\\\>|\2|g/; t" \
        -e "s/^\([^$tab]*\)$tab\(.*\)/s|\1|\2|g/" >"$tmp/renames.sed"
}
# Everything in a folder of results as one text: each file's name, then its lines.
told() {
    (cd "$1" && find . -type f | sort | while read -r f; do echo "== ${f#./}"; sed -f "$tmp/renames.sed" "$f"; done)
}

# Times and paths of this run, versions: what may differ between two runs that answer alike.
normalise() {
    sed -e "s|$work/|../|g; s|$BUILD/||g; s|$tree/|../tree/|g; s|$data/|../data/|g" \
        -e 's/"seconds": [0-9.]*, "records_per_s": [0-9.]*/"seconds": T, "records_per_s": T/' \
        -e 's/ in [0-9.]* s ([0-9.e+kM]* [a-z]*\/s)/ in T s/' \
        -e '/^cdmpp-train: /s/: [0-9]*:[0-9]* /: T /; s/; [0-9.kM]* samples\/s, ETA .*//; s/\(error [0-9.]*\), [0-9.]* s$/\1, T s/' \
        -e 's/\("valid_error":[^,]*,\("known":[a-z]*,\)*"seconds":\)[0-9.]*/\1T/g' \
        -e 's/searched in [0-9.]* s/searched in T s/' \
        -e 's/"search_s":[-+0-9.e]*/"search_s":T/g; s/predicted by [0-9a-f]\{12\}/predicted by MODEL/g; s/"model":"sha256:[0-9a-f]*"/"model":"MODEL"/' \
        -e 's/"peak_rss_bytes": [0-9]*/"peak_rss_bytes": N/' \
        -e 's/"version":"[0-9][0-9.]*"/"version":"V"/g; s/cdmpp [0-9]*\.[0-9]*\.[0-9]*/cdmpp V/g; s/"cdmpp":"[0-9.]*"/"cdmpp":"V"/g' "$1"
}
# A model in parts: its header as text, the digest of its weights.
model() { # file, where to
    h=$(od -An -t u8 -j 16 -N 8 "$1" | tr -d ' ')
    tail -c +33 "$1" | head -c "$h" >"$tmp/header"
    normalise "$tmp/header" >"$2.header"
    tail -c +$((33 + h)) "$1" | head -c -64 | sha256sum | cut -d ' ' -f 1 >"$2.weights"
}
keep() { # a file of a command, where to
    mkdir -p "$(dirname "$2")"
    case $1 in
    *.db | *.db-wal | *.db-shm) return ;;
    esac
    if [ "$(head -c 8 "$1" | tr -d '\0')" = CDMPPMDL ]; then
        model "$1" "$2"
    elif [ ! -s "$1" ] || grep -Iq . "$1"; then
        normalise "$1" >"$2"
    else
        sha256sum <"$1" | cut -d ' ' -f 1 >"$2.sha256"
    fi
}

# Why a command line cannot run here; nothing where it can.
obstacle() {
    for v in $needs; do
        case $1 in *"\$$v"[!A-Z_0-9]* | *"\$$v") echo "no $(eval "echo \"\$$v\"")"; return ;; esac
    done
    for n in $skipped; do
        case $1 in *"../$n/"*) echo "needs $n"; return ;; esac
    done
}
# Names of the lines to run: all, or those of $ONLY and what they read.
wanted() {
    commands | sed 's/^+//' | awk -v only="${ONLY:-}" '
        { name[NR] = $1; text[NR] = $0 }
        END { n = split(only, o, " "); for (i = 1; i <= n; i++) want[o[i]] = 1
              for (i = NR; i > 0; i--) if (!n || name[i] in want) { want[name[i]] = 1
                  for (j = 1; j < i; j++) if (index(text[i], "../" name[j] "/")) want[name[j]] = 1 }
              for (i = 1; i <= NR; i++) if (name[i] in want) printf " %s ", name[i] }'
}

run() { # build, where to
    BUILD=$(absolute "$1") || exit
    [ -x "$BUILD/cdmpp-extract" ] || die "no cdmpp-extract in $BUILD"
    [ ! -e "$2" ] || [ -e "$2/digests" ] || [ -z "$(ls -A "$2")" ] || die "$2 is something else"
    rm -rf "$2" && mkdir -p "$2" || exit
    out=$(absolute "$2")
    TREE=${TREE:-$(tree_of "$BUILD")} work=$tmp/work
    CDMPP_DATA=${CDMPP_DATA:-$(data_of "$TREE")}
    [ ! -d "$CDMPP_DATA" ] || CDMPP_DATA=$(absolute "$CDMPP_DATA")
    # by the same names for any tree: paths of inputs stand in data sets
    tree=$TREE data=$CDMPP_DATA TREE=../tree CDMPP_DATA=../data
    mkdir "$work" "$work/in" && ln -s "$tree" "$work/tree" && ln -s "$data" "$work/data" && cd "$work/in" || exit
    PATH=$BUILD:$PATH
    export PATH TREE CDMPP_DATA
    needs='' skipped='' odd='' n=0
    lines | grep '^[A-Z_0-9]*=' >"$tmp/definitions"
    while IFS= read -r line; do
        eval "export $line"
        v=${line%%=*}
        case $(eval "echo \"\$$v\"") in ../data/*) eval "[ -e \"\$$v\" ]" || needs="$needs $v" ;; esac
    done <"$tmp/definitions"
    all=" $(wanted) "
    commands >"$tmp/commands"
    : >"$out/digests.part"
    t0=$(date +%s)
    while read -r name line; do
        new=${name%"${name#+}"} name=${name#+}
        case $all in *" $name "*) ;; *) continue ;; esac
        why=$(obstacle "$line")
        if [ -n "$why" ]; then
            skipped="$skipped $name"
            echo "$name  -  skipped: $why" >>"$out/digests.part"
            continue
        fi
        n=$((n + 1))
        mkdir "$work/$name" "$out/$name"
        cd "$work/$name" || exit
        t1=$(date +%s)
        XDG_CACHE_HOME=$PWD/.cache HOME=$PWD timeout "${LIMIT:-600}" sh -c "$line" </dev/null >stdout 2>stderr
        st=$?
        took=$(($(date +%s) - t1))
        [ $took -lt "${SLOW:-10}" ] || echo "regress: $name: $took s" >&2
        find . \( -name .cache -o -name in \) -prune -o -type f -print | while read -r f; do keep "$f" "$out/$name/$f"; done
        told "$out/$name" >"$tmp/told"
        echo "$name  $st  $(sha256sum <"$tmp/told" | cut -d ' ' -f 1)" >>"$out/digests.part"
        case $new$st in
        0 | 3 | +0 | +3) ;;
        +2) skipped="$skipped $name" ;;
        *) odd="$odd $name($st)" ;;
        esac
    done <"$tmp/commands"
    cd "$here" || exit
    mv "$out/digests.part" "$out/digests"
    [ -z "${KEEP:-}" ] || { mkdir "$out/work" && mv "$work"/* "$out/work"; }
    [ -z "$odd" ] || echo "regress: ended with a status that is neither 0 nor 3:$odd" >&2
    echo "regress: $n command lines in $(($(date +%s) - t0)) s, $(grep -c ' - ' "$out/digests") skipped: $out" >&2
    rm -rf "$work"
}

# One JSON member a line, so that a difference is seen.
readable() { told "$1" | sed -e 's/\([,{[]\) *"/\1\n"/g' | cut -c 1-300; }
compare() { # old, new
    for d; do [ -f "$d/digests" ] || die "no digests in $d"; done
    passed=0 failed=0 absent=0 nodata=0
    awk '{ print $1 }' "$2/digests" "$1/digests" | awk '!seen[$1]++' >"$tmp/names"
    while read -r name; do
        a=$(grep "^$name " "$1/digests") b=$(grep "^$name " "$2/digests")
        sa=$(echo "$a" | awk '{ print $2 }') sb=$(echo "$b" | awk '{ print $2 }')
        if [ "$sb" != - ] && marked_new "$name" && { [ -z "$a" ] || [ "$sa" = 2 ] || [ "$sa" = - ]; } && [ "$sb" != 2 ]; then
            echo "$name: skipped (not in REV)"
            absent=$((absent + 1))
        elif [ "$sa" = - ] || [ "$sb" = - ]; then
            nodata=$((nodata + 1))
        elif marked_new "$name" && [ "$sb" = 2 ]; then
            echo "FAIL $name: exit status 2, though the list says that this tree has it"
            failed=$((failed + 1))
        elif [ -n "$a" ] && [ "$a" = "$b" ]; then
            passed=$((passed + 1))
        else
            { [ ! -d "$1/$name" ] || readable "$1/$name"; } >"$tmp/a"
            { [ ! -d "$2/$name" ] || readable "$2/$name"; } >"$tmp/b"
            told "$1/$name" >"$tmp/ta" 2>/dev/null
            told "$2/$name" >"$tmp/tb" 2>/dev/null
            if [ -n "$a" ] && [ "$sa" = "$sb" ] && cmp -s "$tmp/ta" "$tmp/tb"; then
                passed=$((passed + 1))
                continue
            fi
            failed=$((failed + 1))
            echo "FAIL $name: exit status ${sa:-none} and ${sb:-none}"
            diff "$tmp/a" "$tmp/b" | head -n "${HEAD:-12}" | sed 's/^/    /'
        fi
    done <"$tmp/names"
    total=$((passed + failed + absent + nodata))
    [ $((absent + nodata)) -eq 0 ] || echo "$total command lines: $absent skipped (not in REV), $nodata skipped (no reference data)"
    echo "$passed passed, $failed failed"
    [ $failed -eq 0 ] && [ $passed -gt 0 ]
}

build() { # tree, folder in it
    mkdir -p "$root/build/regress"
    make --no-print-directory -j"$(nproc)" -C "$1" MODE=release B="$2" ${CC:+CC="$CC"} all >"$root/build/regress/build.log" 2>&1 ||
        { tail -n 20 "$root/build/regress/build.log" >&2; exit 1; }
}
against() { # revision
    root=$(tree_of "$here")
    rev=${1:-${REGRESS_REV:-}}
    [ -n "$rev" ] || { git -C "$root" rev-parse -q --verify origin/main >/dev/null && rev=origin/main; } || rev=HEAD~1
    id=$(git -C "$root" rev-parse -q --verify "$rev^{commit}") || die "no revision $rev"
    w=$root/build/regress/$id
    CDMPP_DATA=${CDMPP_DATA:-$(data_of "$root")}
    export CDMPP_DATA
    build "$root" "${B:-build/release}"
    [ -d "$w" ] || git -C "$root" worktree add -q --force --detach "$w" "$id" || exit 1
    build "$w" build/release
    # the old answers are kept until the list changes
    stamp="$id $(cat "$LIST" "$here/regress.sh" | cksum) $CDMPP_DATA ${ONLY:-}"
    old=$root/build/regress/old new=$root/build/regress/new
    [ "$(cat "$old.of" 2>/dev/null)" = "$stamp" ] || {
        rm -f "$old.of"
        (TREE=$w; run "$w/build/release" "$old") && echo "$stamp" >"$old.of" || exit 1
    }
    (TREE=$root; cd "$root" && run "${B:-build/release}" "$new") || exit 1
    echo "$rev ($(git -C "$root" rev-parse --short "$id")) and this tree:"
    compare "$old" "$new"
}

rename_script
case ${1:-} in
run) [ $# -eq 3 ] || die "run BUILD OUT"; run "$2" "$3" ;;
compare) [ $# -eq 3 ] || die "compare OLD NEW"; compare "$2" "$3" ;;
against | '') against "${2:-}" ;;
*) die "run BUILD OUT, compare OLD NEW or against [REV]" ;;
esac
