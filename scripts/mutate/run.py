#!/usr/bin/env python3
"""Would a test notice?  make mutate N=100 SEED=1 [ROOMS='predictor/score ...']

Draws N functions at random, makes one small mistake in each (sites.py), and runs the tests that enter the function: unit
tests, fuzz corpora and cases of commands. A mutant that no test notices is a survivor. Writes build/mutate/SEED.tsv (all
mutants), and prints the survivors and the share that was noticed, room by room.

  once:  a copy of the tree, built with -finstrument-functions; every test runs once and says which functions it enters
  then:  for each mutant, compile one file, link and run these tests, those of the same room first, until one fails

A mutant counts as noticed when a test fails, crashes, or takes ten times as long. Mutants that do not compile, or that
compile to the same code, are drawn again. Tests of sanitizers and of refused allocations (make check-long) do not take part.
"""
import argparse
import collections
import concurrent.futures
import os
import queue
import random
import re
import shutil
import subprocess
import sys
import time

import sites

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WORK = os.path.join(TOP, 'build', 'mutate')
FOLDERS = ('base', 'features', 'dataset', 'profiler', 'learner', 'predictor')
OUT = 'build/mutate'  # two folders deep, like build/release: programs look for configs/ from there
MAKE = ['make', '--no-print-directory', '-s', 'MODE=mutate', 'B=' + OUT, 'WERROR=', 'OPT_mutate=-O1 -finstrument-functions',
        'EXTRA=-fvisibility=default']


def run(argv, cwd, limit=900, env=None):
    """Exit status of a process group, None where it ran past `limit` seconds."""
    p = subprocess.Popen(argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                         start_new_session=True)
    try:
        return p.wait(limit)
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, 9)
        p.wait()
        return None


def ask(what, tree):
    return subprocess.run(MAKE + ['print-' + what], cwd=tree, capture_output=True, text=True, check=True).stdout.split()


class Tree:
    """A copy of the sources with a build in it, one for each worker. Its programs find the library in its own folder."""

    def __init__(self, name):
        self.path = os.path.join(WORK, name)

    def copy_sources(self):
        files = subprocess.run(['git', 'ls-files', '-co', '--exclude-standard'], cwd=TOP, capture_output=True, text=True, check=True).stdout.split('\n')
        for f in filter(None, files):
            a, b = os.path.join(TOP, f), os.path.join(self.path, f)
            if os.path.isfile(a) and not (os.path.exists(b) and os.path.getmtime(a) == os.path.getmtime(b)):
                os.makedirs(os.path.dirname(b), exist_ok=True)
                shutil.copy2(a, b)

    def sh(self, text, limit=900, **more):
        build = os.path.join(self.path, OUT)
        return run(['sh', '-c', text], self.path, limit, dict(os.environ, LC_ALL='C', B=build, LD_LIBRARY_PATH=build, **more))

    def make(self, *what):
        return run(MAKE + list(what), self.path)

    def command(self, test):
        kind, name = test.split(':')
        return {'unit': OUT + '/tests/' + name, 'fuzz': f'{OUT}/fuzz/{name} tests/fuzz/seeds/{name}', 'cli': 'sh tests/cli/run.sh ' + name}[kind]

    def link_library(self):
        """All objects of the library as build/libmutant.so."""
        return self.sh(f'cd {OUT} && gcc -shared -Wl,-soname,libmutant.so -o libmutant.so @library.list trace.o $(cat libs.list)')


def build_base():
    """The unchanged program: its tests, how long they take and which functions they enter."""
    base = Tree('base')
    base.copy_sources()
    build = os.path.join(base.path, OUT)
    print('mutate: building', flush=True)
    subprocess.run(MAKE + [f'-j{os.cpu_count()}', OUT + '/libcdmpp.a'], cwd=base.path, check=True)
    subprocess.run(['gcc', '-O2', '-fPIC', '-D_GNU_SOURCE', '-c', os.path.join(TOP, 'scripts/mutate/trace.c'), '-o', build + '/trace.o'], check=True)
    with open(build + '/library.list', 'w', encoding='utf-8') as f:
        f.write(' '.join(o.removeprefix(OUT + '/') for o in ask('LIBO', base.path)))
    with open(build + '/libs.list', 'w', encoding='utf-8') as f:
        f.write(' '.join(ask('LIBS', base.path)))
    if base.link_library() != 0:
        sys.exit('mutate: cannot link the library')
    with open(build + '/libcdmpp.a', 'w', encoding='utf-8') as f:  # a linker script: programs need the shared library in its place
        f.write(f'INPUT({OUT}/libmutant.so)\n')
    subprocess.run(MAKE + [f'-j{os.cpu_count()}', 'tests', 'replayers'] + ask('BIN', base.path), cwd=base.path, check=True)
    tests = ['unit:' + t.split(OUT + '/tests/')[1] for t in ask('TEST', base.path)]
    tests += ['fuzz:' + t for t in ask('FUZZ', base.path)]
    tests += ['cli:' + f[:-4] for f in sorted(os.listdir(os.path.join(base.path, 'tests/cli/cases'))) if f.endswith('.cmd') and f != 'install.cmd']
    out = subprocess.run(['nm', build + '/libmutant.so'], capture_output=True, text=True, check=True).stdout
    symbols = [(int(x[0], 16) // 16, x[2].split('.')[0]) for x in map(str.split, out.split('\n')) if len(x) == 3 and x[1] in 'tT']
    enters, seconds = collections.defaultdict(list), {}
    for t in tests:
        folder = os.path.join(WORK, 'trace')
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        t0 = time.time()
        if base.sh(base.command(t), CDMPP_TRACE=folder) != 0:
            print('mutate: left out, it fails on the unchanged program:', t, flush=True)
            continue
        seconds[t] = time.time() - t0
        for f in entered(folder, symbols):
            enters[f].append(t)
    return enters, seconds


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


def link(tree, file):
    """Objects to programs, after one object changed. The exit status."""
    return tree.make(f'{OUT}/{command_of(file)}') if command_of(file) else tree.link_library()


def try_mutant(tree, file, text, site, tests):
    """The test that noticed, '' for none; None where the mutant is no mutant."""
    path, obj = os.path.join(tree.path, file), f'{OUT}/{file[:-2]}.o'

    def compile_it(source):
        with open(path, 'w', encoding='utf-8') as f:
            f.write(source)
        st = tree.make(obj)
        with open(os.path.join(tree.path, obj), 'rb') as f:
            return st, f.read()

    with open(os.path.join(tree.path, obj), 'rb') as f:
        before = f.read()
    try:
        st, after = compile_it(sites.apply(text, site))
        if st != 0 or after == before or link(tree, file) != 0:
            return None
        for t, usual in tests:
            if tree.sh(tree.command(t), limit=10 * usual + 20) != 0:
                return t
        return ''
    finally:
        compile_it(text)
        link(tree, file)


def order(file, names, seconds, most):
    """Tests of the room first, then the quick ones, at most `most` seconds together."""
    room, out, total = os.path.dirname(file), [], 0
    for t in sorted(names, key=lambda t: (os.path.dirname(t.split(':')[1]) != room, seconds[t])):
        total += seconds[t]
        if total > most and out:
            break
        out.append((t, seconds[t]))
    return out


def report(rows, seed):
    path = os.path.join(WORK, f'{seed}.tsv')
    with open(path + '.new', 'w', encoding='utf-8') as f:
        f.write('file\tline\tfunction\tkind\tfrom\tto\tnoticed by\n')
        for r in rows:
            f.write('\t'.join(str(x).replace('\n', ' ') for x in r) + '\n')
    os.rename(path + '.new', path)
    rooms = collections.defaultdict(list)
    for r in rows:
        rooms[r[0].split('/')[0]].append(bool(r[6]))
    print('survivors:')
    for r in rows:
        if not r[6]:
            print(f'  {r[0]}:{r[1]}: {r[2]}: {r[3]}: "{r[4]}" became "{r[5]}"')
    for room in sorted(rooms):
        print(f'  {room:12} {sum(rooms[room]):4} of {len(rooms[room]):4} noticed, {100 * sum(rooms[room]) / len(rooms[room]):.0f} %')
    print(f'mutate: seed {seed}: {sum(bool(r[6]) for r in rows)} of {len(rows)} noticed; all of them in build/mutate/{seed}.tsv')


def main():
    p = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    p.add_argument('-n', type=int, default=100)
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('--most', type=float, default=120, help='seconds of tests for a mutant (default 120)')
    p.add_argument('--jobs', type=int, default=os.cpu_count())
    p.add_argument('rooms', nargs='*')
    o = p.parse_args()
    for name in ('MAKEFLAGS', 'MFLAGS', 'MODE', 'B', 'CDMPP_DATA'):
        os.environ.pop(name, None)  # of the make that calls
    os.makedirs(WORK, exist_ok=True)
    enters, seconds = build_base()
    trees = queue.Queue()
    for k in range(o.jobs):
        t = Tree(f'worker{k}')
        shutil.rmtree(t.path, ignore_errors=True)
        shutil.copytree(os.path.join(WORK, 'base'), t.path, symlinks=True)  # times of files are kept: make finds nothing to do
        trees.put(t)

    def one(mutant):
        file, name, site, line, text = mutant
        tests = order(file, enters.get(command_of(file) or name, []), seconds, o.most)
        tree = trees.get()
        try:
            by = try_mutant(tree, file, text, site, tests)
        finally:
            trees.put(tree)
        return None if by is None else (file, line, name, site[0], text[site[1]:site[2]], site[3], by)

    rows, stream = [], draw(o.seed, o.rooms)
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as ex:
        while len(rows) < o.n:
            part = [m for m, _ in zip(stream, range(min(4 * o.jobs, o.n - len(rows))))]
            if not part:
                break
            rows += [r for r in ex.map(one, part) if r]
            print(f'mutate: {len(rows)} of {o.n}, {sum(bool(r[6]) for r in rows)} noticed', flush=True)
    report(rows, o.seed)


if __name__ == '__main__':
    sys.exit(main())
