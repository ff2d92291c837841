#!/bin/sh
# get_data.sh [--to FOLDER] [--url ADDRESS] [--sha256 HEX] NAME | --list -- fetch a public data set: resumed, checked, unpacked.
#
# NAME is a line of data_sets.txt; it lands in FOLDER (default: data), where the configurations look for it. A download that was
# stopped goes on with the same command. The size and the SHA-256 are compared with those of the list or of --sha256; where nobody
# published them, with those that the first download recorded in FILE.sha256. --url: the same file from another place.
# Needs curl, and unzip or tar: apt-get install -y curl unzip.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
to=data url='' name='' want=''
usage() { sed -n 's/^# //p; /^set/q' "$0" | head -n 1 >&2; exit 2; }
die() { echo "get_data: $*" >&2; exit 1; }
while [ $# -gt 0 ]; do
    case $1 in
    --list) awk '!/^#/ && NF { printf "%-12s %s\n", $1, $2 }' "$here/data_sets.txt"; exit 0 ;;
    --to | --url | --sha256)
        [ $# -gt 1 ] || usage
        case $1 in --to) to=$2 ;; --url) url=$2 ;; *) want=$2 ;; esac
        shift ;;
    -*) usage ;;
    *) [ -z "$name" ] || usage; name=$1 ;;
    esac
    shift
done
[ -n "$name" ] || usage
# shellcheck disable=SC2046
set -- $(awk -v n="$name" '!/^#/ && $1 == n' "$here/data_sets.txt")
[ $# -eq 6 ] || die "no data set '$name'; known are: $("$0" --list | awk '{ printf "%s%s", s, $1; s = ", " }')"
file=$to/$2 size=$3 sha=$4 folder=$to/$5 from=${url:-$6} page=''
[ -z "$want" ] || sha=$want
for p in curl unzip sha256sum; do
    command -v $p >/dev/null || die "$p is missing: apt-get install -y curl unzip coreutils"
done
# A large file of Google Drive comes without a question only with confirm=t.
case $from in drive:*)
    page=https://drive.google.com/file/d/${from#drive:}/view
    from="https://drive.usercontent.google.com/download?id=${from#drive:}&export=download&confirm=t" ;;
esac
if [ -d "$folder" ]; then echo "get_data: $folder is there"; exit 0; fi
mkdir -p "$to"
part=$file.part

bytes() { wc -c <"$1" | tr -d ' '; }
is_page() { head -c 512 "$1" 2>/dev/null | grep -aqi '<html\|<!doctype'; }
fetch() { curl -fL --retry 3 -C - -o "$part" "$1"; }
whole() { unzip -tqq "$1" >/dev/null 2>&1; }

if [ ! -f "$file" ]; then
    [ ! -s "$part" ] || echo "get_data: going on behind $(bytes "$part") bytes"
    # a part that is whole already is refused by the server: nothing is left to send
    [ -s "$part" ] && whole "$part" || fetch "$from" || die "stopped: the same command goes on"
    if is_page "$part"; then # Drive asks all the same: its form has one more number
        id=$(sed -n 's/.*name="uuid" value="\([^"]*\)".*/\1/p' "$part")
        rm -f "$part"
        [ -z "$id" ] || fetch "$from&uuid=$id" || die "stopped: the same command goes on"
        if [ -z "$id" ] || is_page "$part"; then
            rm -f "$part"
            die "the server sent a page, not the file (Google Drive: too many downloads today). Later, or in a browser: ${page:-$from}, saved as $file"
        fi
    fi
    mv "$part" "$file"
fi

n=$(bytes "$file")
[ "$size" = - ] || [ "$size" = "$n" ] || die "$file has $n bytes, expected $size: delete it and start again"
echo "get_data: $file: $n bytes; its SHA-256 is computed"
now=$(sha256sum "$file" | cut -d' ' -f1)
[ "$sha" != - ] || [ ! -f "$file.sha256" ] || sha=$(cut -d' ' -f1 "$file.sha256")
if [ "$sha" = - ]; then
    # nothing to compare with: at least every member of the archive has its checksum
    whole "$file" || die "$file is damaged: delete it and start again"
    (cd "$to" && echo "$now  $2" >"$2.sha256")
    echo "get_data: nobody published a digest; recorded in $file.sha256: $now"
elif [ "$sha" != "$now" ]; then
    die "$file has SHA-256 $now, expected $sha: delete it and start again"
fi
rm -rf "$folder.unpacked"
unzip -q -d "$folder.unpacked" "$file"
[ -d "$folder.unpacked/$5" ] || die "$file has no folder $5"
mv "$folder.unpacked/$5" "$folder"
rm -rf "$folder.unpacked"
echo "get_data: $folder"
