#!/usr/bin/env python3
"""Would a test notice?  make mutate N=100 SEED=1 [ROOMS='predictor/score ...'] [ARGS='--minutes 30 --page']

Draws N functions at random, makes one small mistake in each (sites.py), and runs the tests that enter the function: unit
tests, fuzz corpora and cases of commands. A mutant that no test notices is a survivor. Writes build/mutate/SEED.tsv (all
mutants), and prints the survivors and the share that was noticed, room by room. --page writes docs/internals/mutation.md.

  once:  a copy of the tree, built with -finstrument-functions; every test runs once and says which functions it enters
         (kept in build/mutate/trace.json: a later run repeats this for tests that changed, and for all where sources did)
  then:  for each mutant, compile one file, link and run these tests, those of the same room first, until one fails

A mutant counts as noticed when a test fails, crashes, or takes ten times as long. What it has started is ended then. Mutants that do not compile, or that
compile to the same code, are drawn again. Tests of sanitizers and of refused allocations (make check-long) do not take part.
"""
import argparse
import atexit
import collections
import concurrent.futures
import hashlib
import itertools
import json
import os
import queue
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

import sites

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WORK = os.path.join(TOP, 'build', 'mutate')
FOLDERS = ('base', 'features', 'dataset', 'profiler', 'learner', 'predictor')
WRAP, WRAP_SO = 'profiler/wrap/process_profile_heap.c', 'libcdmpp-wrap.so'  # a library of its own, which other programs load
OUT = 'build/mutate'  # two folders deep, like build/release: programs look for configs/ from there
MAKE = ['make', '--no-print-directory', '-s', 'MODE=mutate', 'B=' + OUT, 'WERROR=', 'OPT_mutate=-O1 -finstrument-functions',
        'EXTRA=-fvisibility=default', '-o', OUT + '/libcdmpp.a']  # is a linker script here, whatever its age


def end_marked(mark):
    """Ends every process that has `mark` in its environment: also those that left the group of the test that began them."""
    found = True
    while found:
        found = False
        for pid in filter(str.isdigit, os.listdir('/proc')):
            try:
                with open(f'/proc/{pid}/environ', 'rb') as f:
                    if mark.encode() not in f.read():
                        continue
                os.kill(int(pid), signal.SIGKILL)
                found = True
            except OSError:
                continue


MARK, runs = f'CDMPP_MUTATE={WORK}/', itertools.count()


def run(argv, cwd, limit=900, env=None):
    """Exit status, None where it ran past `limit` seconds. Nothing that it started is left."""
    mark = f'{MARK}{os.getpid()}/{next(runs)}/'
    env = dict(env or os.environ, CDMPP_MUTATE=mark.split('=')[1])
    p = subprocess.Popen(argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                         start_new_session=True)
    try:
        return p.wait(limit)
    except subprocess.TimeoutExpired:
        return None
    finally:
        end_marked(mark)
        p.wait()


def ask(what, tree):
    return subprocess.run(MAKE + ['print-' + what], cwd=tree, capture_output=True, text=True, check=True).stdout.split()


class Tree:
    """A copy of the sources with a build in it, one for each worker. Its programs find the library in its own folder."""

    def __init__(self, name):
        self.path = os.path.join(WORK, name)
        self.stale = False  # libmutant.so is that of a mutant that is gone

    def copy_sources(self):
        files = subprocess.run(['git', 'ls-files', '-co', '--exclude-standard'], cwd=TOP, capture_output=True, text=True, check=True).stdout.split('\n')
        for at, folders, names in os.walk(self.path):  # what is no longer there
            folders[:] = [f for f in folders if f not in ('build', '__pycache__')]
            for f in names:
                if not os.path.exists(os.path.join(TOP, os.path.relpath(os.path.join(at, f), self.path))):
                    os.unlink(os.path.join(at, f))
        for f in filter(None, files):
            a, b = os.path.join(TOP, f), os.path.join(self.path, f)
            if os.path.islink(a):
                os.makedirs(os.path.dirname(b), exist_ok=True)
                if not os.path.islink(b):
                    os.symlink(os.readlink(a), b)
            elif os.path.isfile(a) and not (os.path.exists(b) and os.path.getmtime(a) == os.path.getmtime(b)):
                os.makedirs(os.path.dirname(b), exist_ok=True)
                shutil.copy2(a, b)

    def sh(self, text, limit=900, **more):
        build = os.path.join(self.path, OUT)
        text = f'ulimit -t {int(limit * os.cpu_count()) + 1}; {text}'  # ends what spins, even where this script is killed
        return run(['sh', '-c', text], self.path, limit, dict(os.environ, LC_ALL='C', B=build, LD_LIBRARY_PATH=build, **more))

    def make(self, *what):
        return run(MAKE + list(what), self.path)

    def compile(self, file):
        """As make does it, without the second that make takes to find out."""
        if file == WRAP:
            return self.make(f'{OUT}/{WRAP_SO}')
        if os.path.basename(file).startswith('mpi_'):
            return self.make(f'{OUT}/{file[:-2]}.o')  # has flags of its own
        with open(os.path.join(self.path, OUT, 'flags'), encoding='utf-8') as f:
            return self.sh(f'{f.read().strip()} -c {file} -o {OUT}/{file[:-2]}.o')

    def command(self, test):
        kind, name = test.split(':')
        return {'unit': f'{OUT}/tests/{os.path.dirname(name)}/units {os.path.basename(name)}',
                'fuzz': f'{OUT}/fuzz/replay {name} tests/fuzz/seeds/{name}', 'cli': 'sh tests/cli/run.sh ' + name}[kind]

    def link_library(self):
        """All objects of the library as build/libmutant.so."""
        lld = '-fuse-ld=lld' if shutil.which('ld.lld') else ''
        return self.sh(f'cd {OUT} && gcc {lld} -shared -Wl,-soname,libmutant.so -o libmutant.so @library.list trace.o $(cat libs.list)')


def build_base():
    """The unchanged program and its tests."""
    base = Tree('base')
    base.copy_sources()
    build = os.path.join(base.path, OUT)
    print('mutate: building', flush=True)
    objects, jobs = ask('LIBO', base.path), f'-j{os.cpu_count()}'
    subprocess.run(MAKE + [jobs] + objects, cwd=base.path, check=True)
    subprocess.run(['gcc', '-O2', '-fPIC', '-D_GNU_SOURCE', '-c', os.path.join(TOP, 'scripts/mutate/trace.c'), '-o', build + '/trace.o'], check=True)
    with open(build + '/library.list', 'w', encoding='utf-8') as f:
        f.write(' '.join(o.removeprefix(OUT + '/') for o in objects))
    with open(build + '/libs.list', 'w', encoding='utf-8') as f:
        f.write(' '.join(ask('LIBS', base.path)))
    if base.link_library() != 0:
        sys.exit('mutate: cannot link the library')
    with open(build + '/libcdmpp.a', 'w', encoding='utf-8') as f:  # a linker script: programs need the shared library in its place
        f.write(f'INPUT({OUT}/libmutant.so)\n')
    subprocess.run(MAKE + [jobs, 'tests', 'replayers'] + ask('BIN', base.path), cwd=base.path, check=True)
    return base


def list_tests(base):
    """{test: the files that are only its own}"""
    cases = os.path.join(base.path, 'tests/cli/cases')
    tests = {'unit:' + t[len('tests/'):-len('.c')]: [t] for t in ask('TESTC', base.path)}
    tests |= {'fuzz:' + t: [f'tests/fuzz/fuzz_{t}.c', 'tests/fuzz/seeds/' + t] for t in ask('FUZZ', base.path)}
    tests |= {'cli:' + f[:-4]: ['tests/cli/cases/' + f, f'tests/cli/cases/{f[:-4]}.expect']
              for f in sorted(os.listdir(cases)) if f.endswith('.cmd') and f != 'install.cmd'}
    return tests


def digest(base, paths, but=()):
    """Of the contents of files and folders, without those that `but` names."""
    h = hashlib.sha256()
    for path in paths:
        full = os.path.join(base.path, path)
        files = [full] if os.path.isfile(full) else sorted(os.path.join(at, f) for at, _, names in os.walk(full) for f in names)
        for f in files:
            name = os.path.relpath(f, base.path)
            if not any(name == b or name.startswith(b + '/') for b in but):
                with open(f, 'rb') as r:
                    h.update(name.encode() + b'\0' + r.read())
    return h.hexdigest()


def trace(base, trees, o):
    """({function: its tests}, {test: seconds}); what an earlier run found about a test is used where neither it nor a source changed
    (o.stale: where it did not change)."""
    tests = list_tests(base)
    out = subprocess.run(['nm', os.path.join(base.path, OUT, 'libmutant.so')], capture_output=True, text=True, check=True).stdout
    symbols = [(int(x[0], 16) // 16, x[2].split('.')[0]) for x in map(str.split, out.split('\n')) if len(x) == 3 and x[1] in 'tT']
    common = digest(base, FOLDERS + ('tests', 'configs', 'Makefile'), {f for own in tests.values() for f in own})
    kept = os.path.join(WORK, 'trace.json')
    old = {}
    if os.path.exists(kept):
        with open(kept, encoding='utf-8') as f:
            old = json.load(f)

    def one(test):
        key = [common, digest(base, tests[test])]
        before = old.get(test, {}).get('key', [None, None])
        if before == key or (o.stale and before[1] == key[1]):
            return test, old[test]
        tree, folder = trees.get(), os.path.join(WORK, 'trace', test.replace('/', '%'))
        try:
            for _ in range(2):  # a machine under load disturbs some
                shutil.rmtree(folder, ignore_errors=True)
                os.makedirs(folder)
                t0 = time.time()
                st = tree.sh(tree.command(test), CDMPP_TRACE=folder)
                seconds = time.time() - t0
                if st == 0:
                    return test, {'key': key, 'seconds': seconds, 'enters': sorted(entered(folder, symbols))}
            print('mutate: left out, it fails on the unchanged program:', test, flush=True)
            return test, None
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            trees.put(tree)

    with concurrent.futures.ThreadPoolExecutor(o.jobs) as ex:
        found = {t: v for t, v in ex.map(one, tests) if v}
    with open(kept + '.new', 'w', encoding='utf-8') as f:
        json.dump(found, f)
    os.rename(kept + '.new', kept)
    enters = collections.defaultdict(list)
    for t, v in found.items():
        for f in v['enters']:
            enters[f].append(t)
    return enters, {t: v['seconds'] for t, v in found.items()}


def entered(folder, symbols):
    """Names of the functions that a test entered, and "cdmpp-x" for each command that it ran."""
    names = set()
    for f in os.listdir(folder):
        names.add(f.split('@')[0].split('%')[-1])
        with open(os.path.join(folder, f), 'rb') as r:
            marks = r.read()
        names.update(n for i, n in symbols if marks[i])
    return names


def draw(seed, rooms):
    """An endless row of mutants (file, function, site, line) of functions drawn with equal chance."""
    rng, every = random.Random(seed), []
    for folder in FOLDERS:
        for at, _, files in os.walk(os.path.join(TOP, folder)):
            room = os.path.relpath(at, TOP)
            for f in sorted(files):
                if f.endswith('.c') and (not rooms or any(room == r or room.startswith(r + '/') for r in rooms)):
                    with open(os.path.join(at, f), encoding='utf-8') as r:
                        text = r.read()
                    every += [(os.path.join(room, f), text, g) for g in sites.functions(text)]
    every.sort(key=lambda e: (e[0], e[2]))
    while every:
        file, text, (name, begin, end) = every.pop(rng.randrange(len(every)))
        found = sites.sites(text, begin, end)
        if found:
            s = rng.choice(found)
            yield file, name, s, text.count('\n', 0, s[1]) + 1, text


def command_of(file):
    """The command that a file of a folder cmd/ belongs to; None for the library."""
    m = re.search(r'/cmd/(?:.*/)?main_([a-z]+)', file)
    return 'cdmpp-' + m.group(1) if m else None


def object_of(file):
    return f'{OUT}/{WRAP_SO}' if file == WRAP else f'{OUT}/{file[:-2]}.o'


def known_by(file, name):
    """What a trace calls the function, or what runs it."""
    return 'cd_process_profile_run' if file == WRAP else command_of(file) or name


def link(tree, file):
    """Objects to programs, after one object changed. The exit status."""
    if file == WRAP:
        return 0
    if not command_of(file):
        return tree.link_library()
    if tree.stale and tree.link_library() != 0:
        return 1
    tree.stale = False
    return tree.make(f'{OUT}/{command_of(file)}')


def relink(tree, file):
    """The same after the old object is back, with its old time; the library when it is needed."""
    if file == WRAP:
        return
    tree.stale = not command_of(file) or tree.stale
    if command_of(file):
        os.unlink(os.path.join(tree.path, OUT, command_of(file)))
        link(tree, file)


def swap(path, content):
    """Writes a file in place of what was there. Returns what puts that back, its time too: make then finds nothing to do."""
    with open(path, 'rb') as f:
        before, times = f.read(), os.stat(path)

    def back():
        with open(path, 'wb') as f:
            f.write(before)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    if content is not None:
        with open(path, 'wb') as f:
            f.write(content)
    return before, back


def try_mutant(tree, file, text, site, tests):
    """The test that noticed, '' for none; None where the mutant is no mutant."""
    obj = os.path.join(tree.path, object_of(file))
    if not os.path.exists(obj):
        return None  # of a command that this machine does not build: cdmpp-mpi without Open MPI
    before, object_back = swap(obj, None)
    _, source_back = swap(os.path.join(tree.path, file), sites.apply(text, site).encode())
    try:
        if tree.compile(file) != 0:
            return None
        with open(obj, 'rb') as f:
            if f.read() == before or link(tree, file) != 0:
                return None
        for t, usual in tests:
            if tree.sh(tree.command(t), limit=10 * usual + 5) != 0:
                return t
        return ''
    finally:
        source_back()
        object_back()
        relink(tree, file)


def order(file, names, seconds, most):
    """Tests of the room first, then the quick ones, at most `most` seconds together."""
    room, out, total = os.path.dirname(file), [], 0
    for t in sorted(names, key=lambda t: (os.path.dirname(t.split(':')[1]) != room, seconds[t])):
        total += seconds[t]
        if total > most and out:
            break
        out.append((t, seconds[t]))
    return out


def by_room(rows):
    """[(room, noticed, all)], "all" at the end."""
    rooms = collections.defaultdict(list)
    for r in rows:
        rooms[r[0].split('/')[0]].append(bool(r[6]))
        rooms['~all'].append(bool(r[6]))
    return [(room.strip('~'), sum(v), len(v)) for room, v in sorted(rooms.items())]


def survivor(r):
    return f'{r[0]}:{r[1]}: {r[2]}: {r[3]}: "{r[4]}" became "{r[5]}"'


def report(rows, seed):
    path = os.path.join(WORK, f'{seed}.tsv')
    with open(path + '.new', 'w', encoding='utf-8') as f:
        f.write('file\tline\tfunction\tkind\tfrom\tto\tnoticed by\n')
        for r in rows:
            f.write('\t'.join(str(x).replace('\n', ' ') for x in r) + '\n')
    os.rename(path + '.new', path)
    print('survivors:')
    for r in rows:
        if not r[6]:
            print('  ' + survivor(r))
    for room, noticed, n in by_room(rows):
        print(f'  {room:12} {noticed:4} of {n:4} noticed, {100 * noticed / n:.0f} %')
    print(f'mutate: seed {seed}; all of them in build/mutate/{seed}.tsv', flush=True)


def revision():
    return subprocess.run(['git', 'rev-parse', '--short=8', 'HEAD'], cwd=TOP, capture_output=True, text=True, check=True).stdout.strip()


def write_page(rows, o, commit):
    """docs/internals/mutation.md: the score and the survivors of this run, which began at commit."""
    rooms = f' ROOMS={" ".join(o.rooms)!r}' if o.rooms else ''
    with open(os.path.join(TOP, 'docs/internals/mutation.md'), 'w', encoding='utf-8') as f:
        f.write('# Mistakes that tests notice\n\n'
                f"`make mutate N={len(rows)} SEED={o.seed}{rooms} ARGS='--most {o.most:g} --page'` wrote this page; the tests are those of revision {commit}. "
                '[testing.md](testing.md#would-a-test-notice) says what it does.\n\n'
                '| folder | mistakes | noticed | % |\n| --- | --: | --: | --: |\n')
        for room, noticed, n in by_room(rows):
            f.write(f'| {room} | {n} | {noticed} | {100 * noticed / n:.0f} |\n')
        f.write('\nNo test noticed these. Some of them change nothing that a user can see.\n\n'
                '| file | line | function | what | from | to |\n| --- | --: | --- | --- | --- | --- |\n')
        for r in (r for r in rows if not r[6]):
            cells = [re.sub(r'\s+', ' ', str(x)).replace('|', '\\|') for x in r[:6]]
            f.write(f'| {cells[0]} | {cells[1]} | {cells[2]} | {cells[3]} | `{cells[4]}` | {f"`{cells[5]}`" if cells[5] else "nothing"} |\n')


def options():
    p = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    p.add_argument('-n', type=int, default=100)
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('--most', type=float, default=120, help='seconds of tests for a mutant (default 120)')
    p.add_argument('--minutes', type=float, default=1e9, help='no new mutant after this time; those under way come to their end')
    p.add_argument('--jobs', type=int, default=os.cpu_count())
    p.add_argument('--stale', action='store_true', help='sources changed little: which tests enter a function is as an earlier run found it')
    p.add_argument('--page', action='store_true', help='write docs/internals/mutation.md')
    p.add_argument('rooms', nargs='*')
    return p.parse_args()


def begin():
    """What an earlier run that was killed has left is ended; so is, at the end of this one, what it started."""
    for name in ('MAKEFLAGS', 'MFLAGS', 'MODE', 'B', 'CDMPP_DATA'):
        os.environ.pop(name, None)  # of the make that calls
    os.makedirs(WORK, exist_ok=True)
    end_marked(MARK)
    atexit.register(end_marked, MARK)
    for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(s, stop)


def stop(number, _):
    end_marked(MARK)
    os._exit(128 + number)


def copies(base, jobs):
    """A queue of trees, one for each worker."""
    trees = queue.Queue()
    for k in range(jobs):
        t = Tree(f'worker{k}')
        shutil.rmtree(t.path, ignore_errors=True)
        shutil.copytree(base.path, t.path, symlinks=True)  # times of files are kept: make finds nothing to do
        trees.put(t)
    return trees


def main():
    o, t0, commit = options(), time.time(), revision()
    begin()
    base = build_base()
    trees = copies(base, o.jobs)
    enters, seconds = trace(base, trees, o)
    rows, stream, lock = {}, enumerate(draw(o.seed, o.rooms)), threading.Lock()

    def work(tree):
        while True:
            with lock:
                k, mutant = next(stream, (0, None)) if len(rows) < o.n and time.time() < t0 + 60 * o.minutes else (0, None)
            if not mutant:
                return
            file, name, site, line, text = mutant
            by = try_mutant(tree, file, text, site, order(file, enters.get(known_by(file, name), []), seconds, o.most))
            if by is None:
                continue
            with lock:
                rows[k] = (file, line, name, site[0], text[site[1]:site[2]], site[3], by)
                print(f'mutate: {len(rows)} of {o.n}, {sum(bool(r[6]) for r in rows.values())} noticed; {by or survivor(rows[k])}', flush=True)

    with concurrent.futures.ThreadPoolExecutor(o.jobs) as ex:
        for f in [ex.submit(work, trees.get()) for _ in range(o.jobs)]:
            f.result()
    done = [rows[k] for k in sorted(rows)]
    report(done, o.seed)
    if o.page:
        write_page(done, o, commit)


if __name__ == '__main__':
    sys.exit(main())
