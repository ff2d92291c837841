#!/usr/bin/env python3
"""wheel.py -- a Python wheel with the modules, the commands, the library, the models and every shared library that they need but those
of the C and C++ runtimes: build/wheel/cdmpp-VERSION-py3-none-manylinux_2_X_x86_64.whl. Called by `make wheel`, which has built $B.

    cdmpp.py, cdmpp_*.py, cdmpp-stubs modules, and the types of cdmpp
    cdmpp.libs/libcdmpp.so.0, *.so*   the library, and what it needs; each looks beside itself (RPATH $ORIGIN, set by patchelf)
    cdmpp.libs/bin/cdmpp-*            commands; bin/cdmpp-* of the environment start them
    cdmpp.libs/share/cdmpp            models, configs

X is the version of the C library here: the wheel runs where that is as new or newer."""
import base64, glob, hashlib, os, platform, re, shutil, subprocess, sys, zipfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
B = os.path.join(TOP, os.environ.get("B", "build/release"))
W = os.path.join(TOP, "build/wheel")
# Parts of the C and C++ runtimes, which every system has (PEP 599 and later list them).
SYSTEM = re.compile(r"^(linux-vdso|ld-linux.*|libc|libm|libdl|libpthread|librt|libresolv|libutil|libgcc_s|libstdc\+\+)[.-]")
START = """#!python
import importlib.util, os, sys
home = os.path.join(os.path.dirname(importlib.util.find_spec("cdmpp").origin), "cdmpp.libs", "bin")
os.execv(os.path.join(home, "%s"), [os.path.join(home, "%s")] + sys.argv[1:])
"""

def run(*argv):
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout

def version():
    with open(os.path.join(TOP, "cdmpp.h")) as f:
        return re.search(r'#define CDMPP_VERSION "(.*)"', f.read())[1]

def needed(path):
    """Names and places of shared libraries that are not the system's."""
    found = {}
    for line in run("ldd", path).splitlines():
        m = re.match(r"\s*(\S+) => (/\S+)", line)
        if m and not SYSTEM.match(m[1]):
            found[m[1]] = os.path.realpath(m[2])
    return found

def place(path, to, rpath):
    shutil.copy(path, to)
    os.chmod(to, 0o755)
    run("strip", "--strip-unneeded", to) # before patchelf, which moves what strip would not find again
    run("patchelf", "--set-rpath", rpath, to)

def collect(root):
    """The files of the wheel below `root`; their names."""
    libs = os.path.join(root, "cdmpp.libs")
    os.makedirs(os.path.join(libs, "bin"))
    for f in glob.glob(os.path.join(TOP, "scripts/python/*.py")):
        shutil.copy(f, root)
    shutil.copytree(os.path.join(TOP, "scripts/python/cdmpp-stubs"), os.path.join(root, "cdmpp-stubs"))
    commands = sorted(f for f in glob.glob(B + "/cdmpp-*") + glob.glob(B + "/cdmpp") if os.access(f, os.X_OK) and os.path.isfile(f) and not f.endswith("cdmpp-mpi"))
    found = needed(B + "/libcdmpp.so")
    for f in commands:
        found.update(needed(f))
        place(f, os.path.join(libs, "bin", os.path.basename(f)), "$ORIGIN/..")
    place(B + "/libcdmpp.so", os.path.join(libs, "libcdmpp.so.0"), "$ORIGIN")
    for name, path in sorted(found.items()):
        place(path, os.path.join(libs, name), "$ORIGIN")
    shutil.copy(B + "/libcdmpp-wrap.so", os.path.join(libs, "bin"))
    for folder in ("models", "configs"):
        shutil.copytree(os.path.join(TOP, folder), os.path.join(libs, "share/cdmpp", folder))
    scripts = os.path.join(root, "cdmpp-%s.data/scripts" % version())
    os.makedirs(scripts)
    for f in commands:
        name = os.path.basename(f)
        with open(os.path.join(scripts, name), "w") as to:
            to.write(START % (name, name))
        os.chmod(os.path.join(scripts, name), 0o755)

def metadata(root, tag):
    info = os.path.join(root, "cdmpp-%s.dist-info" % version())
    os.makedirs(info)
    shutil.copy(os.path.join(TOP, "LICENSE"), info)
    with open(os.path.join(TOP, "README.md")) as f:
        about = f.read()
    with open(os.path.join(info, "METADATA"), "w") as f:
        f.write("Metadata-Version: 2.1\nName: cdmpp\nVersion: %s\nSummary: Predict how long tensor programs, networks and language models take on a device\n"
                "License: Apache-2.0\nRequires-Python: >=3.8\nRequires-Dist: numpy\nDescription-Content-Type: text/markdown\n\n%s" % (version(), about))
    with open(os.path.join(info, "WHEEL"), "w") as f:
        f.write("Wheel-Version: 1.0\nGenerator: cdmpp scripts/wheel.py\nRoot-Is-Purelib: false\nTag: %s\n" % tag)
    return info

def pack(root, info, path):
    record = os.path.join(info, "RECORD")
    files = sorted(os.path.join(d, f) for d, _, names in os.walk(root) for f in names)
    with open(record, "w") as f:
        for p in files:
            with open(p, "rb") as data:
                bytes_ = data.read()
            digest = base64.urlsafe_b64encode(hashlib.sha256(bytes_).digest()).rstrip(b"=").decode()
            f.write("%s,sha256=%s,%d\n" % (os.path.relpath(p, root), digest, len(bytes_)))
        f.write("%s,,\n" % os.path.relpath(record, root))
    with zipfile.ZipFile(path + ".new", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as z:
        for p in files + [record]:
            z.write(p, os.path.relpath(p, root))
    os.replace(path + ".new", path)

def main():
    libc = platform.libc_ver()[1].replace(".", "_")
    tag = "py3-none-manylinux_%s_%s" % (libc, platform.machine())
    root = os.path.join(W, "root")
    shutil.rmtree(W, ignore_errors=True)
    os.makedirs(root)
    collect(root)
    path = os.path.join(W, "cdmpp-%s-%s.whl" % (version(), tag))
    pack(root, metadata(root, tag), path)
    print("wheel: %s, %.1f MB: python3 -m pip install %s" % (os.path.relpath(path, TOP), os.path.getsize(path) / 1e6, os.path.relpath(path, TOP)))
    return 0

if __name__ == "__main__":
    sys.exit(main())
