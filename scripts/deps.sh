#!/bin/sh
# deps.sh [-n] [PACKAGE...] -- install the packages of scripts/apt-packages.txt, and those named,
# that are missing.
#
# Says nothing and needs neither network nor root when none is. -n: only name
# what is missing, exit status 1 then. Uses sudo when not root.
set -eu
cd "$(dirname "$0")/.."
if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "deps: no apt here; what is needed is listed in scripts/apt-packages.txt" >&2
    exit 0
fi
only_name=
[ "${1:-}" != -n ] || { only_name=1; shift; }
missing=
for p in "$@" $(sed 's/#.*//' scripts/apt-packages.txt | awk '{ print $1 }'); do
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
apt update || echo "deps: cannot refresh the package lists, going on with those here" >&2
# shellcheck disable=SC2086
apt install -y --no-install-recommends $missing >/dev/null || { echo "deps: cannot install$missing" >&2; exit 1; }
echo "deps: installed$missing" >&2
