#!/bin/sh
# The compiler of this file's name, which does not compile the same text a second time (scripts/compile_once.sh).
here=${0%/*} name=${0##*/} rest=$PATH: PATH=
while [ -n "$rest" ]; do # without this folder: ccache looks for the compiler in PATH, too
    dir=${rest%%:*}
    rest=${rest#*:}
    [ "$dir" = "$here" ] || PATH=$PATH${PATH:+:}$dir
done
real=$(command -v "$name") || { echo "$name: not found" >&2; exit 127; }
to= last= input= all=
for a; do
    if [ "$last" = -o ]; then to=$a; else all="$all $a"; fi
    [ "$a" != - ] || input=1
    last=$a
done
[ -n "$to" ] && [ -n "$input" ] && [ -n "${COMPILE_ONCE_OF:-}" ] || exec "$real" "$@"
text=$to.text
cat >"$text" || { rm -f "$text"; exit 1; }
key=$({ echo "$real$all $COMPILE_ONCE_OF"; cat "$text"; } | sha256sum)
key=${key%% *}
file=${here%/*}/${key%"${key#??}"}/$key
if [ -e "$file" ] && cp "$file" "$to"; then
    rm -f "$text"
    exit 0
fi
said=$("$real" "$@" <"$text" 2>&1)
rc=$?
rm -f "$text"
[ -z "$said" ] || { printf '%s\n' "$said" >&2; exit $rc; }
[ $rc -eq 0 ] || exit $rc
{ mkdir -p "${file%/*}" && cp "$to" "$file.$$" && mv "$file.$$" "$file"; } 2>/dev/null # others read it: in one step
exit 0
