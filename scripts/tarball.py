#!/usr/bin/env python3
"""tarball.py -- what `make install` installs, with every shared library that it needs but those of the C and C++ runtimes, in one
archive that runs where it is unpacked: build/tarball/cdmpp-VERSION-linux-MACHINE.tar.xz. Called by `make tarball`, which has built $B.

    bin lib include share     as below PREFIX (scripts/install.sh); each file looks for libraries in lib (RPATH, set by patchelf)

It runs on systems whose C library is as new as the one here, or newer."""
import glob, os, platform, shutil, subprocess, sys, tarfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from wheel import B, TOP, needed, place, version

W = os.path.join(TOP, "build/tarball")

def installed(name):
    """`make install` into a folder of that name; its path."""
    prefix = "/" + name
    subprocess.run(["sh", os.path.join(TOP, "scripts/install.sh")], check=True, env=dict(os.environ, B=B, PREFIX=prefix, DESTDIR=W, LIBDIR="lib"), stdout=subprocess.DEVNULL)
    return W + prefix

def bundle(root):
    """Copies of all libraries into lib, where commands and libraries find them."""
    lib = os.path.join(root, "lib")
    own = [(f, "$ORIGIN/../lib") for f in glob.glob(root + "/bin/*")] + [(f, "$ORIGIN") for f in glob.glob(lib + "/libcdmpp.so.*.*")]
    found = {}
    for path, rpath in own:
        found.update(needed(path))
        built = path + ".built"
        os.rename(path, built)
        place(built, path, rpath)
        os.remove(built)
    for name, path in found.items():
        place(path, os.path.join(lib, name), "$ORIGIN")

def relocatable(root):
    """cdmpp.pc names its folder by where it lies."""
    path = os.path.join(root, "lib/pkgconfig/cdmpp.pc")
    with open(path) as f:
        text = f.read()
    with open(path, "w") as f:
        f.writelines("prefix=${pcfiledir}/../..\n" if l.startswith("prefix=") else l for l in text.splitlines(True))

def by_root(member):
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member

def main():
    name = "cdmpp-%s-linux-%s" % (version(), platform.machine())
    path = os.path.join(W, name + ".tar.xz")
    shutil.rmtree(W, ignore_errors=True)
    root = installed(name)
    bundle(root)
    relocatable(root)
    with tarfile.open(path + ".new", "w:xz") as t:
        t.add(root, name, filter=by_root)
    os.replace(path + ".new", path)
    print("tarball: %s, %.1f MB: tar -xJf %s && %s/bin/cdmpp" % (os.path.relpath(path, TOP), os.path.getsize(path) / 1e6, os.path.basename(path), name))
    return 0

if __name__ == "__main__":
    sys.exit(main())
