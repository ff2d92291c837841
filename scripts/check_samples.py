#!/usr/bin/env python3
"""check_samples.py [--update] [PAGE...] -- what pages show as the output of a command is what it prints.

A page has

    <!-- output: cdmpp-replay examples/resnet18.onnx --device zen4 -->
    ```text
    ...
    ```

The command runs in sh, in a scratch folder with links to examples, configs and models, with the build in PATH; standard output and
error are compared. `| head` and `| cut` in the command show a part. --update writes what it prints. Default: README.md, docs/guide."""
import glob, os, re, subprocess, sys, tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BLOCK = re.compile(r"(<!-- output: (.*?) -->\n```text\n)(.*?)(^```$)", re.S | re.M)

def python():
    """One that has numpy, as the module needs it."""
    for p in (os.environ.get("PYTHON"), "/usr/bin/python3", sys.executable):
        if p and subprocess.run([p, "-c", "import numpy"], capture_output=True, check=False).returncode == 0:
            return p
    return sys.executable

def sandbox(folder):
    b = os.path.join(TOP, os.environ.get("B", "build/release"))
    for name in ("examples", "configs", "models", "README.md"):
        os.symlink(os.path.join(TOP, name), os.path.join(folder, name))
    os.makedirs(os.path.join(folder, "build"))
    os.symlink(b, os.path.join(folder, "build/release"))
    os.makedirs(os.path.join(folder, "bin"))
    os.symlink(python(), os.path.join(folder, "bin/python3"))
    with open(os.path.join(folder, "my.onnx"), "wb") as to, open(os.path.join(TOP, "examples/resnet18.onnx"), "rb") as f:
        to.write(f.read())
    env = dict(os.environ, PATH=b + ":" + folder + "/bin:" + os.environ["PATH"], XDG_CACHE_HOME=folder + "/cache", XDG_DATA_HOME=folder + "/data", LC_ALL="C",
               PYTHONPATH=os.path.join(TOP, "scripts/python"), CDMPP_LIBRARY=b + "/libcdmpp.so", COLUMNS="120")
    env.pop("CDMPP_DEFAULT_MODEL", None)
    return env

def printed(command, folder, env):
    p = subprocess.run(["sh", "-c", command], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return "".join(l.rstrip() + "\n" for l in p.stdout.replace(folder + "/", "").replace(TOP + "/", "").splitlines())

def main(argv):
    update, pages = "--update" in argv, [a for a in argv if a != "--update"]
    os.chdir(TOP)
    pages = pages or ["README.md"] + sorted(glob.glob("docs/guide/*.md"))
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        env = sandbox(folder)
        for page in pages:
            with open(page, encoding="utf-8") as f:
                text = f.read()
            fresh = BLOCK.sub(lambda m: m[1] + printed(m[2], folder, env) + m[4], text)
            for old, new in zip(BLOCK.finditer(text), BLOCK.finditer(fresh)):
                same = old[3] == new[3]
                passed, failed = passed + same, failed + (not same)
                if not same and not update:
                    print("FAIL %s: %s prints\n%s" % (page, old[2], new[3]))
            if update and fresh != text:
                with open(page + ".new", "w", encoding="utf-8") as f:
                    f.write(fresh)
                os.replace(page + ".new", page)
    print("samples: %d passed, %d failed" % (passed, 0 if update else failed))
    return 0 if update or (not failed and passed) else 1

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
