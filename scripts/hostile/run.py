#!/usr/bin/env python3
"""Does any file hurt a command?  make hostile N=1000 SEED=1 [ARGS='--only onnx,trace --keep FOLDER']

Makes N small hostile files of all formats that commands read, and gives each to its command. Fails where one ends by a signal,
takes over 10 s, takes over 1 GiB of memory (for a file under 1 MB), ends with a status that docs/reference/commands.md does not
name, or prints a sanitizer's report. A file that did is kept in build/hostile.

Files are mutants of valid ones, written with regard to the form: in JSON, YAML and CSV a value becomes huge, negative, fractional,
empty, of another type, deeply nested, or comes twice; in protobuf a dimension or a length becomes huge; packed texts expand a
thousandfold; of binary files bytes, lengths and 32-bit words change, and the check sum of our own containers is made anew. All of
a run follow from SEED. Python 3 and nothing else.
"""
import argparse
import hashlib
import json
import lzma
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SEEDS = os.path.join(TOP, 'tests/fuzz/seeds')
LIMIT_S, LIMIT_BYTES, LIMIT_FILE = 10, 1 << 30, 1 << 20
STATUS = {0, 1, 2, 3, 4, 5, 6, 130}
HUGE = ['1e999', '-1', '0', '1e-300', '9223372036854775807', '9223372036854775808', '1099511627776', '4294967296', '2147483648',
        '65536', '1.5', '-0.0', 'null', '""', '[]', '{}', 'true', 'NaN', 'Infinity', '1e18', '3000']


# ---- mutations: (random, bytes) -> bytes ----
def text_number(r, data):
    """One number becomes another."""
    found = list(re.finditer(rb'-?\d+(\.\d+)?([eE][-+]?\d+)?', data))
    if not found:
        return bit_flip(r, data)
    m = r.choice(found)
    return data[:m.start()] + r.choice(HUGE).encode() + data[m.end():]


def text_numbers(r, data):
    """Many numbers grow: sizes whose product no machine holds."""
    by = r.choice([b'000', b'00000', b'0000000'])
    return re.sub(rb'\b\d+\b', lambda m: m.group() + by if r.random() < 0.2 else m.group(), data)


def text_string(r, data):
    """One string becomes long, empty, a name with a meaning elsewhere, or no UTF-8."""
    found = list(re.finditer(rb'"[^"\n]{0,200}"', data))
    if not found:
        return bit_flip(r, data)
    m = r.choice(found)
    new = r.choice([b'""', b'"' + b'A' * 100000 + b'"', b'"../../etc/passwd"', b'"*/ abort(); /*"', b'"<script>x</script>"', b'"\\u0000"',
                    b'"\xff\xfe"', b'"%s%n"', b'"\\ud800"', b'"a\\nb"', b'7'])
    return data[:m.start()] + new + data[m.end():]


def text_twice(r, data):
    """One line, or one item between commas, comes twice or many times."""
    part = b'\n' if data.count(b'\n') > 3 else b','
    items = data.split(part)
    k = r.randrange(len(items))
    return part.join(items[:k] + [items[k]] * r.choice([2, 2, 3, 300]) + items[k + 1:])


def text_gone(r, data):
    part = r.choice([b'\n', b',', b' '])
    items = data.split(part)
    k = r.randrange(len(items))
    return part.join(items[:k] + items[k + 1:])


def text_nest(r, data):
    """One value becomes a deep nest."""
    found = list(re.finditer(rb'[\[{]', data))
    depth = r.choice([100, 5000, 200000])
    at = r.choice(found).start() if found else len(data) // 2
    one = r.choice([b'[', b'{"a":'])
    return data[:at] + one * depth + data[at:] + (b']' if one == b'[' else b'}') * r.choice([0, depth])


def text_many(r, data):
    """One list becomes long."""
    found = list(re.finditer(rb'\[([^\[\]]{1,200})\]', data))
    if not found:
        return text_twice(r, data)
    m = r.choice(found)
    items = b','.join([m.group(1)] * r.choice([10, 300, 3000]))
    return data[:m.start()] + b'[' + items + b']' + data[m.end():]


def cut(r, data):
    return data[:r.randrange(len(data) + 1)]


def bit_flip(r, data):
    b = bytearray(data or b'x')
    for _ in range(r.choice([1, 1, 2, 8])):
        b[r.randrange(len(b))] ^= 1 << r.randrange(8)
    return bytes(b)


def word(r, data):
    """One 32- or 64-bit word becomes a large or negative number."""
    b, n = bytearray(data), r.choice([4, 8])
    if len(b) <= n:
        return bit_flip(r, data)
    at = r.randrange(len(b) - n)
    v = r.choice([0, 1, -1, 0x7fffffff, 0x80000000, 0xffffffff, 1 << 40, 1 << 62, 255, 65536]) & ((1 << (8 * n)) - 1)
    b[at:at + n] = v.to_bytes(n, 'little')
    return bytes(b)


def varint(r, data):
    """One byte becomes a long varint: a size or a dimension of protobuf."""
    if not data:
        return b'\xff'
    at = r.randrange(len(data))
    return data[:at] + r.choice([b'\xff\xff\xff\xff\x0f', b'\x80\x80\x80\x80\x80\x20', b'\xff' * 9 + b'\x01', b'\x00']) + data[at + 1:]


def insert(r, data):
    at = r.randrange(len(data) + 1)
    return data[:at] + bytes(r.randrange(256) for _ in range(r.choice([1, 4, 64]))) + data[at:]


def swap(r, data):
    """A part moves."""
    if len(data) < 8:
        return bit_flip(r, data)
    a, b = sorted(r.sample(range(len(data)), 2))
    c = r.randrange(b, len(data))
    return data[:a] + data[b:c] + data[a:b] + data[c:]


TEXT = [text_number, text_number, text_number, text_numbers, text_string, text_twice, text_gone, text_nest, text_many, cut, bit_flip]
BINARY = [bit_flip, word, word, varint, cut, insert, swap]
PROTO = [varint, varint, bit_flip, word, cut, insert, swap]


def container(r, data):
    """Our own container (base/io/container.c: magic and version, two lengths, a JSON header, a body, SHA-256 in hexadecimal), with
    a check sum that is right: only the readers behind it can refuse the mutant."""
    n_head, n_body = struct.unpack('<QQ', data[16:32])
    head, body = data[32:32 + n_head], data[32 + n_head:32 + n_head + n_body]
    if len(head) != n_head or len(body) != n_body:
        return bit_flip(r, data)
    if not body or r.random() < 0.4:
        head = r.choice(TEXT)(r, head)
    else:
        body = r.choice(BINARY)(r, body)
    lengths = (n_head, n_body) if r.random() < 0.1 else (len(head), len(body))
    new = data[:16] + struct.pack('<QQ', *lengths) + head + body
    return new + hashlib.sha256(new).hexdigest().encode()


def packed(r, data):
    """A small file that expands: the text repeated, or white space without end."""
    line = data.rstrip() + b'\n'
    first, unit, n = r.choice([(b'', b' ' * (1 << 20), 200), (data, b'\n' * (1 << 20), 100), (b'', line, max(1, (64 << 20) // len(line))),
                               (b'', b'[' * (1 << 20), 64), (b'"', b'a' * (1 << 20), 300)])
    # In pieces: what this process holds counts as memory of the commands that it starts.
    how = r.choice([lambda: zlib.compressobj(6, zlib.DEFLATED, 31), lambda: lzma.LZMACompressor(preset=0)])()
    return b''.join([how.compress(first), *(how.compress(unit) for _ in range(n)), how.flush()])


# ---- formats: name, seeds, mutations, command lines with {} for the file ----
def seeds(folder, *ends):
    at = os.path.join(SEEDS, folder)
    return [os.path.join(at, f) for f in sorted(os.listdir(at)) if not ends or f.endswith(ends)]


class Made:
    """Valid files that commands make, once a run."""

    def __init__(self, build, folder):
        self.build, self.folder = build, folder
        self.zen5 = os.path.join(TOP, 'examples/zen5')
        self.tasks = os.path.join(self.zen5, 'zen5.tasks.json.xz')
        self.golden = [os.path.join(TOP, 'tests/golden', f) for f in sorted(os.listdir(os.path.join(TOP, 'tests/golden'))) if f.endswith('.cdmpp')]
        with open(os.path.join(self.zen5, 'held_out.json'), encoding='utf-8') as f:
            self.records = self.put('records.json', ''.join(f.readlines()[:6]))
        with lzma.open(self.tasks, 'rt') as f:
            doc = json.load(f)
        if isinstance(doc, dict):
            doc = {k: (v[:6] if isinstance(v, list) else v) for k, v in doc.items()}
        self.few_tasks = self.put('tasks.json', json.dumps(doc))
        self.sh(f'cdmpp-extract -q --tasks {self.tasks} --out set.h5 records.json')
        net = f'--network squeezenet-1.1 --input-size 32 --cost-model {self.golden[0]} --trials 1'
        self.sh(f'cdmpp-replay -q {net} --device zen5-avx512 --save-graph graph.json --save-schedules best.json --trace trace.json')
        self.sh(f'cdmpp-partition -q {net} --as zen5-avx512 --devices cpu0,cpu1 --save-plan plan.json')
        self.sh('cdmpp-profile store import --store s.db --device zen5 records.json')
        self.put('curve.csv', 'size,seconds,curve\n' + ''.join(f'{n},{1e-6 * n:g},a\n' for n in range(1, 40)))
        self.put('queries.json', '')
        self.sh(f'cdmpp-replay {net} --device zen5-avx512 --batch 1,2 --json >queries.json')
        self.sh(f'cdmpp-train -q {TOP}/examples/serving/operators.yaml --set data.files=[{TOP}/examples/serving/operators.csv] --out ops.cdmpp')
        self.put('runs.csv', 'gpu,isl,osl,concurrency,tp\nh100,128,32,1,1\nh100,256,64,8,1\n')
        self.put('step.json', '{"prefill":[[512,0]],"decode":[300,700]}\n')
        self.put('stream.json', '{"cmd":"hello","id":"h"}\n' + open(self.records, encoding='utf-8').readline() + '{"cmd":"stats"}\n')

    def path(self, name):
        return os.path.join(self.folder, name)

    def put(self, name, text):
        with open(self.path(name), 'w', encoding='utf-8') as f:
            f.write(text)
        return self.path(name)

    def sh(self, line):
        subprocess.run(['sh', '-c', line], cwd=self.folder, env=env(self.build), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def formats(m):
    """What there is to read. A seed that could not be made is left out, and said."""
    g, ex, conf = m.golden[0], os.path.join(TOP, 'examples'), os.path.join(TOP, 'configs')
    fast = f'--cost-model {g} --trials 1'
    serving = f'--gpu h100 --isl 128 --osl 4 --concurrency 1 --cost-model {m.path("ops.cdmpp")}'
    traces = [os.path.join(ex, 'traces', f) for f in sorted(os.listdir(os.path.join(ex, 'traces'))) if f.endswith(('.json', '.csv'))]
    onnx = [os.path.join(TOP, 'tests/cli/data/randwire.onnx')] + seeds('onnx')
    return [
        ('records', [m.records] + seeds('record'), TEXT + [packed], [f'cdmpp-extract -q --tasks {m.tasks} --out o.h5 {{}}', f'cdmpp-predict -q {fast.split(" --trials")[0]} --tasks {m.tasks} --eval {{}}',
                                                                    f'cdmpp-profile store import --store o.db --device zen5 {{}}']),
        ('tasks', [m.few_tasks] + seeds('taskfile'), TEXT + [packed], ['cdmpp-extract -q --write-tasks --tasks {}', 'cdmpp-profile draw -q --trials 1 --tasks {} --out o.json']),
        ('pickle', seeds('pickle'), BINARY, ['cdmpp-extract -q --write-tasks --tasks {}']),
        ('onnx', onnx, PROTO, [f'cdmpp-replay -q --device zen5-avx512 {fast} --network {{}}', f'cdmpp-partition -q --as zen5-avx512 --devices cpu0,cpu1 {fast} --network {{}}']),
        ('model', m.golden, [container, container, container, bit_flip, cut], ['cdmpp-predict --info --cost-model {}', f'cdmpp-predict -q --cost-model {{}} --tasks {m.tasks} --device zen5-avx512 --eval {m.records}']),
        ('operators model', [m.path('ops.cdmpp')], [container, container, bit_flip, cut], ['cdmpp-predict --info --operators --cost-model {}',
                                                                                           f'cdmpp-replay -q --llm {ex}/serving/config.json --gpu h100 --isl 128 --osl 4 --concurrency 1 --cost-model {{}}']),
        ('data set', [m.path('set.h5')], BINARY, [f'cdmpp-train -q {conf}/quickstart.yaml --set data.files={{}} --set train.rounds=2 --out o.cdmpp', 'cdmpp-extract -q --merge o.h5 {}']),
        ('configuration', [os.path.join(conf, f) for f in ('quickstart.yaml', 'default.yaml', 't4.yaml')] + seeds('yaml'), TEXT, ['cdmpp-train --print-config {}']),
        ('devices', [os.path.join(conf, 'devices.yaml')], TEXT, [f'cdmpp-replay -q {fast} --network squeezenet-1.1 --input-size 32 --device zen5-avx512 --devices {{}}']),
        ('trace', traces + seeds('trace'), TEXT + [packed], ['cdmpp-profile trace {}', 'cdmpp-profile store import --store o.db --form trace {}']),
        ('llm config', [os.path.join(ex, 'serving/config.json')], TEXT, [f'cdmpp-replay -q {serving} --llm {{}}']),
        ('llm runs', [m.path('runs.csv')], TEXT, [f'cdmpp-replay -q --llm {ex}/serving/config.json --cost-model {m.path("ops.cdmpp")} --runs {{}}']),
        ('llm step', [m.path('step.json')], TEXT, [f'cdmpp-replay -q --llm {ex}/serving/config.json --gpu h100 --cost-model {m.path("ops.cdmpp")} --stream <{{}}']),
        ('operators table', [os.path.join(ex, 'serving/operators.csv')] + seeds('llm_optable') + seeds('optable'), TEXT + [packed],
         [f'cdmpp-replay -q {serving} --llm {ex}/serving/config.json --measured {{}}', f'cdmpp-predict -q --operators --cost-model {m.path("ops.cdmpp")} --eval {{}}']),
        ('graph', [m.path('graph.json')] + seeds('netgraph'), TEXT, ['cdmpp-replay -q --graph {} --replay-given']),
        ('schedules', [m.path('best.json')], TEXT, [f'cdmpp-replay -q --network squeezenet-1.1 --input-size 32 --device zen5-avx512 {fast} --schedules {{}}']),
        ('plan', [m.path('plan.json')] + seeds('plan'), TEXT, ['cdmpp-partition -q --network squeezenet-1.1 --input-size 32 --devices cpu0,cpu1 --plan {}']),
        ('machine', [os.path.join(conf, 'machine-gpu.json')] + seeds('machine'), TEXT, [f'cdmpp-partition -q --network squeezenet-1.1 --input-size 32 {fast} --as zen5-avx512 --no-split --machine {{}} --emit emitted']),
        ('rules', seeds('rules'), TEXT, [f'cdmpp-partition -q --machine {conf}/offload/machine.json --network squeezenet-1.1 --input-size 32 --devices cpu0,npu --rules {{}} --list-patterns']),
        ('store', [m.path('s.db')] + seeds('store'), BINARY, ['cdmpp-profile store stats --store {}', 'cdmpp-profile store list --store {}']),
        ('stream', [m.path('stream.json')] + seeds('stream'), TEXT, [f'cdmpp-predict -q --cost-model {g} --tasks {m.tasks} --device zen5-avx512 --stream <{{}}']),
        ('curve', [m.path('curve.csv')] + seeds('curves'), TEXT, ['cdmpp-partition curve {}', 'cdmpp-partition correlate --target seconds {}']),
        ('queries', [m.path('queries.json')], TEXT, ['cdmpp-partition qos --places 2 --load 0.9 --deadline 0.5 --runs 2 {}']),
    ]


def env(build):
    path = build + os.pathsep + os.environ.get('PATH', '')
    return dict(os.environ, PATH=path, LC_ALL='C', CDMPP_DEFAULT_MODEL='', XDG_CACHE_HOME='/nonexistent', ASAN_OPTIONS='allocator_may_return_null=1')


def attempt(line, folder, build):
    """(what is wrong or '', seconds, bytes): of the command and of all that it started."""
    t0 = time.time()
    with open(os.path.join(folder, '.stderr'), 'wb') as err:
        p = subprocess.Popen(['sh', '-c', 'exec ' + line], cwd=folder, env=env(build), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err,
                             start_new_session=True)
    pid, status, used, hangs = 0, 0, None, False
    while not pid:
        pid, status, used = os.wait4(p.pid, os.WNOHANG)
        if not pid and time.time() - t0 > 4 * LIMIT_S and not hangs:
            hangs = True
            os.killpg(p.pid, 9)
        if not pid:
            time.sleep(0.005)
    p.returncode = 0  # waited for
    seconds, busy = time.time() - t0, used.ru_utime + used.ru_stime
    if busy > seconds / 20 and os.getloadavg()[0] > 1.5 * os.cpu_count():  # it works and does not wait: on a loaded machine its own time counts
        seconds = min(seconds, busy / os.cpu_count())
    peak, code = used.ru_maxrss << 10, os.waitstatus_to_exitcode(status)
    with open(os.path.join(folder, '.stderr'), 'rb') as f:
        err = f.read(1 << 20)
    if hangs:
        return 'hangs', seconds, peak
    if code < 0 or code > 128 and code != 130:
        return f'ends by signal {-code if code < 0 else code - 128}', seconds, peak
    if b'Sanitizer' in err or b'runtime error:' in err:
        return 'a sanitizer reports: ' + err.decode('utf-8', 'replace')[:300], seconds, peak
    if code not in STATUS:
        return f'status {code}', seconds, peak
    return f'{peak >> 20} MiB' if peak > LIMIT_BYTES else '', seconds, peak


def main():
    a = argparse.ArgumentParser(description='hostile files')
    a.add_argument('-n', type=int, default=1000)
    a.add_argument('--seed', type=int, default=1)
    a.add_argument('--only', default='', help='formats, with commas')
    a.add_argument('--keep', default=os.path.join(TOP, 'build/hostile'))
    a.add_argument('--verbose', action='store_true')
    o = a.parse_args()
    build = os.path.abspath(os.environ.get('B', os.path.join(TOP, 'build/release')))
    work = tempfile.mkdtemp()
    bad, done, slowest, largest, answered = 0, 0, (0, ''), (0, ''), {}
    try:
        made = os.path.join(work, 'made')
        os.makedirs(made)
        table = []
        for name, files, mutations, lines in formats(Made(build, made)):
            there = [f for f in files if os.path.isfile(f) and os.path.getsize(f)]
            for f in set(files) - set(there):
                print(f'hostile: {name}: no seed {os.path.basename(f)}')
            if there and (not o.only or name in o.only.split(',')):
                table.append((name, there, mutations, lines))
        for k in range(o.n):
            r = random.Random(f'{o.seed}/{k}')
            name, files, mutations, lines = table[k % len(table)]
            seed = r.choice(files)
            with open(seed, 'rb') as f:
                data = f.read()
            mutate = r.choice(mutations)
            for _ in range(r.choice([1, 1, 1, 2, 4]) if mutate is not packed else 1):
                data = mutate(r, data)
            if len(data) > LIMIT_FILE:
                data = data[:LIMIT_FILE]
            ends = {b'\x1f\x8b': '.gz', b'\xfd7': '.xz'}.get(data[:2], '') if mutate is packed else ''
            folder = os.path.join(work, 'run')
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(folder)
            base = re.sub(r'\.(xz|gz|zst)$', '', os.path.basename(seed)) + ends
            with open(os.path.join(folder, base), 'wb') as f:
                f.write(data)
            line = r.choice(lines).format(base)
            wrong, seconds, peak = attempt(line, folder, build)
            if not wrong and seconds > LIMIT_S:  # a loaded machine: once more
                wrong, seconds, peak = attempt(line, folder, build)
                wrong = wrong or (f'takes {seconds:.0f} s' if seconds > LIMIT_S else '')
            done += 1
            answered[name] = answered.get(name, 0) + 1
            slowest = max(slowest, (seconds, line))
            largest = max(largest, (peak, line))
            if o.verbose:
                print(f'{k} {name} {mutate.__name__} {seconds:.1f} s: {line}', flush=True)
            if wrong:
                bad += 1
                to = os.path.join(o.keep, f'{o.seed}-{k}')
                os.makedirs(to, exist_ok=True)
                shutil.copy(os.path.join(folder, base), to)
                print(f'FAIL {k} ({name}, {mutate.__name__}): {wrong}\n     {line}\n     kept in {to}', flush=True)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(f'{len(table)} formats; slowest {slowest[0]:.1f} s: {slowest[1]}; largest {largest[0] >> 20} MiB')
    print(f'hostile: {done - bad} passed, {bad} failed')
    return bad > 0 or done == 0


if __name__ == '__main__':
    sys.exit(main())
