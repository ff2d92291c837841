#!/bin/sh
# deb.sh -- Debian packages from this checkout, into build/deb: cdmpp, libcdmpp0, libcdmpp-dev, python3-cdmpp.
#
# Installs debhelper and lintian where they are missing, builds in a copy of the tracked files, and
# runs lintian: an error of it is an error here. Called by `make deb`.
set -eu
cd "$(dirname "$0")/.."
scripts/deps.sh build-essential debhelper dh-python fakeroot lintian liblapacke-dev python3
version=$(sed -n 's/^#define CDMPP_VERSION "\(.*\)"/\1/p' cdmpp.h)
packaged=$(sed -n '1s/.*(\(.*\)).*/\1/p' scripts/debian/changelog)
[ "$version" = "$packaged" ] || { echo "deb: cdmpp.h says $version, scripts/debian/changelog $packaged" >&2; exit 1; }
W=build/deb src=build/deb/cdmpp-$version
rm -rf "$W"
mkdir -p "$src"
git ls-files -z | tar --null -T - -cf - | tar -xf - -C "$src"
cp -R scripts/debian "$src/debian"
(cd "$src" && unset MAKEFLAGS MFLAGS && dpkg-buildpackage -us -uc -b) >"$W/build.log" 2>&1 || { tail -n 60 "$W/build.log"; exit 1; }
# The project has no public mail address yet; lintian is asked about everything else.
lintian --fail-on error --suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog "$W"/*.deb >"$W/lintian.txt" || { cat "$W/lintian.txt"; exit 1; }
ls -l "$W"/*.deb
echo "deb: lintian: $(grep -c '^E:' "$W/lintian.txt" || :) errors, $(grep -c '^W:' "$W/lintian.txt" || :) warnings ($W/lintian.txt)"
