#!/bin/sh
# deps.sh [-b] [-n] [PACKAGE...] -- install the packages of scripts/apt-packages.txt, and those named,
# that are missing.
#
# Says nothing and needs neither network nor root when none is. -b: only what building needs. -n: only name
# what is missing, exit status 1 then. Uses sudo when not root. A line every two seconds says how far it is.
set -eu
cd "$(dirname "$0")/.."
if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "deps: no apt here; what is needed is listed in scripts/apt-packages.txt" >&2
    exit 0
fi
only_name= until='^$never'
while :; do
    case ${1:-} in
    -n) only_name=1 ;;
    -b) until='^# test:' ;;
    *) break ;;
    esac
    shift
done
missing=
for p in "$@" $(sed "/$until/,\$d; s/#.*//" scripts/apt-packages.txt | awk '{ print $1 }'); do
    state=$(dpkg-query -W -f='${db:Status-Status} ' "$p" 2>/dev/null) || state=
    case " $state" in *" installed "*) ;; *) missing="$missing $p" ;; esac
done
[ -n "$missing" ] || exit 0
echo "deps: missing:$missing" >&2
[ -z "$only_name" ] || exit 1
root=
if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || { echo "deps: run as root: apt-get install$missing" >&2; exit 1; }
    root=sudo
    [ -t 0 ] || root='sudo -n' # nobody there to type a password
fi
apt() { DEBIAN_FRONTEND=noninteractive $root apt-get -qq -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 "$@" </dev/null; }
. scripts/progress.sh
log=$(mktemp) || exit 1
trap 'progress_end; rm -f "$log"' EXIT
lists() { ls /var/lib/apt/lists 2>/dev/null | wc -l; }
done_steps() { grep -c '^Get:\|^Unpacking\|^Setting up' "$log"; }
progress_begin "deps: package lists" lists
apt update >/dev/null 2>&1 || echo "deps: cannot refresh the package lists, going on with those here" >&2
progress_end
# shellcheck disable=SC2086
total=$(apt install -s -y --no-install-recommends $missing 2>/dev/null | grep -c '^Inst') || total=
progress_begin "deps: fetched, unpacked, set up:" done_steps "${total:+$((3 * total))}"
# shellcheck disable=SC2086
apt -q=1 install -y --no-install-recommends $missing >"$log" 2>&1 || { progress_end; tail -n 20 "$log"; echo "deps: cannot install$missing" >&2; exit 1; }
progress_end
echo "deps: installed$missing" >&2
