#!/usr/bin/env python3
"""Does a small file become a large one?  make hostile-bombs [ARGS='--only records,onnx --packer zst --all']

Fills each format that commands read (scripts/hostile/run.py) with one thing over and over: zeros, a line without an end, brackets,
numbers, keys, empty lines, or its own records, tasks, rows and nodes, packs that with gzip, xz or zstd to less than 1 MB, and gives
it to the commands. The first bytes of the seed stay in front where a form is known by its head. Fails as run.py does: over 10 s,
over 1 GiB, a signal. Without --all each pair of content and command meets one packer only, in turn. Needs xz and zstd.
"""
import argparse
import gzip
import itertools
import json
import lzma
import os
import re
import shutil
import subprocess
import sys
import tempfile

import run

SMALL = 1 << 20
UNIT = 32 << 20  # of plain bytes that are packed at a time and then repeated: all three packers allow members one after another


def pack(how, data):
    if how == 'plain':
        return data
    if how == 'gz':
        return gzip.compress(data, 9, mtime=0)
    if how == 'xz':
        return lzma.compress(data, preset=1)
    return subprocess.run(['zstd', '-q', '-c', '-9'], input=data, stdout=subprocess.PIPE, check=True).stdout


packed_units = {}


def bomb(how, head, unit, tail, most=SMALL - 4096):
    """head, unit as often as goes below 1 MB when packed, tail."""
    big = unit * max(1, (UNIT if how != 'plain' else most) // len(unit))
    key = (how, hash(unit))
    if key not in packed_units:
        packed_units[key] = pack(how, big)
    member, first, last = packed_units[key], b'' if how == 'plain' else pack(how, head), pack(how, tail) if tail else b''
    if how == 'plain':
        first = head
    room = most - len(first) - len(last)
    if len(member) > room:  # one member is too much: less of it
        share = room / len(member) * 0.9
        member = pack(how, unit * max(1, int(len(big) * share) // len(unit)))
    n = max(1, min(room // max(1, len(member)), (4 << 30) // len(big)))
    return first + ballast(how, room - n * len(member)) + member * n + last


def ballast(how, n):
    """At most n packed bytes that unpack to nothing: who bounds the expansion by what was read so far allows the more behind them."""
    if how == 'zst':  # a frame that is skipped
        return b'\x50\x2a\x4d\x18' + (n - 8).to_bytes(4, 'little') + bytes(n - 8) if n > 8 else b''
    return b'' if how == 'plain' else pack(how, b'') * (n // len(pack(how, b'')))


def contents(name, seed):
    """(name, head, unit, tail)"""
    keys = b','.join(b'"k%d":0' % k for k in range(200000)) + b','
    plain = [('zeros', b'', b'\0', b''), ('one line', b'', b'a', b''), ('empty lines', b'', b'\n', b''), ('short lines', b'', b'x\n', b''), ('objects', b'', b'{}\n', b''),
             ('brackets', b'', b'[', b''), ('numbers', b'[', b'0,', b'0]'), ('arrays', b'[', b'[0],', b'0]'), ('keys', b'{', keys, b'"z":0}'), ('key again', b'{', b'"a":1,', b'"a":0}'),
             ('string', b'"', b'a', b'"'), ('escapes', b'"', b'\\n', b'"'), ('commas', b'', b',', b''), ('comments', b'', b'#\n', b'')]
    text = seed[:200000]
    lines = text.splitlines(keepends=True)
    if len(lines) > 1 and len(lines[-1]) > 1:
        plain += [('its last line', b''.join(lines[:-1]), lines[-1].rstrip(b'\n') + b'\n', b''), ('its first line', b'', lines[0].rstrip(b'\n') + b'\n', b''),
                  ('its head and zeros', b''.join(lines[:1]), b'\0', b''), ('its head and short lines', b''.join(lines[:1]), b'x\n', b''), ('its head and numbers', b''.join(lines[:1]), b'1,', b'')]
    try:
        doc = json.loads(seed)
    except (ValueError, UnicodeDecodeError):
        return plain
    plain.append(('its text as lines', b'', json.dumps(doc).encode() + b'\n', b''))
    for at, v in (doc.items() if isinstance(doc, dict) else [(None, doc)]):
        mark = '@@HERE@@'
        filler = {'list': v, 'numbers': [0], 'keys': None}
        if isinstance(v, list) and v:
            holder = mark if at is None else dict(doc, **{at: mark})
            a, b = json.dumps(holder).split('"%s"' % mark)
            plain.append((f'list {at}', (a + '[').encode(), (json.dumps(v[-1]) + ',').encode(), (json.dumps(v[-1]) + ']' + b).encode()))
            plain.append((f'numbers in {at}', (a + '[').encode(), b'0,', ('0]' + b).encode()))
        elif isinstance(v, dict) and v:
            a, b = json.dumps(dict(doc, **{at: mark})).split('"%s"' % mark)
            some = ''.join('"k%d":%s,' % (k, json.dumps(list(v.values())[-1])) for k in range(20000))
            plain.append((f'keys of {at}', (a + '{').encode(), some.encode(), ('"z":0}' + b).encode()))
    return plain


def bytes_of(path):
    with open(path, 'rb') as f:
        data = f.read()
    return lzma.decompress(data) if data[:2] == b'\xfd7' else gzip.decompress(data) if data[:2] == b'\x1f\x8b' else data


def cases(o, table):
    turn = itertools.cycle(['gz', 'zst', 'xz', 'plain'])
    for name, files, _, lines in table:
        for seed in files[:o.seeds]:
            for what, head, unit, tail in contents(name, bytes_of(seed)):
                for line in lines:
                    for how in ['gz', 'zst', 'xz', 'plain'] if o.all else [o.packer or next(turn)]:
                        yield name, seed, what, how, line, (head, unit, tail)


def main():
    a = argparse.ArgumentParser(description='files that expand')
    a.add_argument('--only', default='', help='formats, with commas')
    a.add_argument('--packer', default='', choices=['', 'gz', 'xz', 'zst', 'plain'])
    a.add_argument('--all', action='store_true')
    a.add_argument('--seeds', type=int, default=1, help='of each format')
    a.add_argument('--keep', default=os.path.join(run.TOP, 'build/hostile'))
    a.add_argument('--verbose', action='store_true')
    o = a.parse_args()
    build = os.path.abspath(os.environ.get('B', os.path.join(run.TOP, 'build/release')))
    work, bad, done, slowest, largest = tempfile.mkdtemp(), 0, 0, (0, ''), (0, '')
    try:
        made = os.path.join(work, 'made')
        os.makedirs(made)
        table = [(n, [f for f in files if os.path.isfile(f) and os.path.getsize(f)], m, lines) for n, files, m, lines in run.formats(run.Made(build, made)) if not o.only or n in o.only.split(',')]
        for name, seed, what, how, line, parts in cases(o, table):
            folder = os.path.join(work, 'run')
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(folder)
            base = re.sub(r'\.(xz|gz|zst)$', '', os.path.basename(seed))
            stem, end = os.path.splitext(base)
            with open(os.path.join(folder, base), 'wb') as f:
                f.write(bomb(how, *parts))
            command = line.format(base)
            wrong, seconds, peak = run.attempt(command, folder, build)
            if not wrong and seconds > run.LIMIT_S:  # a loaded machine: once more
                wrong, seconds, peak = run.attempt(command, folder, build)
                wrong = wrong or (f'takes {seconds:.0f} s' if seconds > run.LIMIT_S else '')
            done += 1
            slowest, largest = max(slowest, (seconds, f'{what}, {how}: {command}')), max(largest, (peak, f'{what}, {how}: {command}'))
            if o.verbose:
                with open(os.path.join(folder, '.stderr'), encoding='utf-8', errors='replace') as f:
                    said = f.read(300).strip().split('\n')[0]
                print(f'{name}: {what}, {how}: {seconds:.1f} s {peak >> 20} MiB: {line.split()[0]} {said[:200]}', flush=True)
            if wrong:
                bad += 1
                to = os.path.join(o.keep, re.sub(r'\W+', '-', f'{name} {what} {how}'))
                os.makedirs(to, exist_ok=True)
                shutil.copy(os.path.join(folder, base), to)
                print(f'FAIL {name}: {what}, {how}: {wrong} ({seconds:.1f} s, {peak >> 20} MiB)\n     {command}\n     kept in {to}', flush=True)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(f'slowest {slowest[0]:.1f} s: {slowest[1]}\nlargest {largest[0] >> 20} MiB: {largest[1]}')
    print(f'bombs: {done - bad} passed, {bad} failed')
    return bad > 0 or done == 0


if __name__ == '__main__':
    sys.exit(main())
