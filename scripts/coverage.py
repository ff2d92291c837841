#!/usr/bin/env python3
"""Which branches of the readers of untrusted files do tests take?  make coverage [ARGS='--missed FILE...']

Prints for each reader (scripts/coverage_readers.txt) how many of its lines and branches were taken, and the sum. Ends with status 1
where a test fails or the sum of branches is below the bar.

What runs: the unit tests of the rooms that have a reader, with refused allocations (CD_FAULT), and the seeds of all fuzz targets.
Both check what they read. Only readers are compiled for coverage, without optimisation; the other objects are those of the release build.

What counts: each branch that gcov sees in the lines of a reader's own file: both ways of every condition of an if, a loop, ?:, && and
||, every case of a switch. A CD_TRY counts like the if that it is: something below refused, and that the refusal arrives is tested.
What does not:
* functions of headers, which belong to no reader;
* assert() (NDEBUG): it tells our own mistakes, never a file's;
* lines that NEVER lists below, each with the reason why no file takes the branch.

--missed FILE...   lines with branches that no test took, from the last run
--rooms ROOM...    run only the unit tests of these rooms, and add to the last run
--no-run           only the table, from the last run
Python 3 and gcov, nothing else.
"""
import argparse
import json
import os
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = 'build/cov'
BAR = 95.0
# (file, text of the line without what is around it): reason
NEVER = {}


def readers():
    with open(os.path.join(TOP, 'scripts/coverage_readers.txt')) as f:
        lines = [line.strip() for line in f if line.strip() and not line.startswith('#')]
    with open('/proc/cpuinfo') as f:
        flags = f.read().split()
    names = []
    for line in lines:
        name, _, needs = (part.strip() for part in line.partition('# needs '))
        if needs and needs not in flags:
            print('coverage: %s is left out: this processor has no %s' % (name, needs))
        else:
            names.append(name)
    for name in names:
        if not os.path.isfile(os.path.join(TOP, name)):
            sys.exit('coverage: scripts/coverage_readers.txt: %s is not there' % name)
    return names


def forget(folder):
    """The counts of earlier runs."""
    for at, _, names in os.walk(folder):
        for name in names:
            if name.endswith('.gcda'):
                os.remove(os.path.join(at, name))


def run_tests(rooms, corpora):
    """True: all passed."""
    env = dict(os.environ, MODE='cov', B=BUILD, UNITS=' '.join(rooms))
    ok = not rooms or subprocess.run(['sh', 'scripts/check.sh', 'unit'], env=env).returncode == 0
    return not corpora or subprocess.run(['sh', 'scripts/check.sh', 'corpora'], env=env).returncode == 0 and ok


def counted(name):
    """{line: [taken, ...]} of one reader: how often each line ran, and each of its branches."""
    stem = os.path.join(BUILD, name[:-2])
    if not os.path.isfile(stem + '.gcno'):
        sys.exit('coverage: %s.gcno is not there: was it built with MODE=cov?' % stem)
    out = subprocess.run(['gcov', '--json-format', '--stdout', '--branch-probabilities', stem + ('.gcda' if os.path.isfile(stem + '.gcda') else '.gcno')],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
    lines = {}
    for f in json.loads(out)['files']:
        if os.path.relpath(os.path.join(TOP, f['file']), TOP) != name:
            continue
        for line in f['lines']:
            runs, branches = lines.get(line['line_number'], (0, []))
            lines[line['line_number']] = (runs + line['count'], branches + [b['count'] for b in line['branches']])
    with open(os.path.join(TOP, name)) as f:
        source = f.read().split('\n')
    used = set()
    for n in list(lines):
        for never in NEVER:
            if never[0] == name and never[1] in source[n - 1]:
                used.add(never)
                lines[n] = (lines[n][0], [b for b in lines[n][1] if b])
    for never in NEVER:
        if never[0] == name and never not in used:
            sys.exit('coverage: no line "%s" in %s (NEVER)' % (never[1], name))
    return lines, source


def percent(part, whole):
    return 100.0 * part / whole if whole else 100.0


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument('--missed', nargs='+')
    p.add_argument('--rooms', nargs='+')
    p.add_argument('--no-run', action='store_true')
    a = p.parse_args()
    os.chdir(TOP)
    names = readers()
    if a.missed:
        for name in a.missed:
            lines, source = counted(name)
            for n in sorted(lines):
                runs, branches = lines[n]
                if not runs and not branches or 0 in branches:
                    print('%s:%d: [%s] %s' % (name, n, ' '.join(str(min(b, 99)) for b in branches) or 'never', source[n - 1].strip()))
        return 0
    ok = True
    if a.rooms:
        ok = run_tests(a.rooms, False)
    elif not a.no_run:
        forget(BUILD)
        rooms = sorted({os.path.dirname(n) for n in names} & {os.path.dirname(os.path.relpath(os.path.join(at, f), 'tests'))
                       for at, _, files in os.walk('tests') for f in files if f.startswith('test_') and f.endswith('.c')})
        ok = run_tests(rooms, True)
    sums = [0, 0, 0, 0]
    print('%-52s %16s %18s' % ('', 'lines', 'branches'))
    for name in names:
        lines, _ = counted(name)
        branches = [b for _, bs in lines.values() for b in bs]
        row = [sum(1 for runs, _ in lines.values() if runs), len(lines), sum(1 for b in branches if b), len(branches)]
        sums = [s + r for s, r in zip(sums, row)]
        print('%-52s %5d/%-5d %5.1f %5d/%-5d %5.1f' % (name, row[0], row[1], percent(row[0], row[1]), row[2], row[3], percent(row[2], row[3])))
    print('%-52s %5d/%-5d %5.1f %5d/%-5d %5.1f' % ('%d readers' % len(names), sums[0], sums[1], percent(sums[0], sums[1]), sums[2], sums[3], percent(sums[2], sums[3])))
    if percent(sums[2], sums[3]) < BAR:
        print('coverage: branches: %.2f %%, the bar is %.0f %%' % (percent(sums[2], sums[3]), BAR))
        ok = False
    return 0 if ok else 1


if __name__ == '__main__':
    sys.exit(main())
