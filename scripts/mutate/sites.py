"""Where a C source can be made wrong, and how: functions of a file and the mutations that each allows.

A mutation is one small change that a tired engineer could make: a comparison off by one, a sign, a constant, a
condition the wrong way round, a statement that is missing. Comments, strings and declarations stay as they are.

Some places are not drawn, because no output can show what changed there, or because make check-long looks there:
  * memory that gets larger: the length of a local array, and a summand or factor of what an allocator is asked for. (Memory
    that gets smaller is drawn: n - 1 for n + 1. So is a length that is compared or divided.)
  * which of several allocations was refused: && for || between pointers whose failure is ENOMEM. make check-long refuses
    each allocation in turn (MODE=san);
  * a release that is missing, and the head of a loop that does nothing but release: make check-long has a leak checker
    (MODE=san).
"""
import re

HIDDEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^[ \t]*#(?:[^\n\\]|\\.|\\\n)*', re.S | re.M)
HEAD = re.compile(r'^[A-Za-z_][^\n;={}]*?\b([a-z_][A-Za-z0-9_]*)\([^;{}]*\)\s*\{', re.M)
OPERATORS = [  # name, what it looks like between two operands, what takes its place
    ('boundary', r' (<=|>=|<|>) ', {'<': '<=', '<=': '<', '>': '>=', '>=': '>'}),
    ('direction', r' (<=|>=|<|>) ', {'<': '>', '<=': '>=', '>': '<', '>=': '<='}),
    ('equality', r' (==|!=) ', {'==': '!=', '!=': '=='}),
    ('logic', r' (&&|\|\|) ', {'&&': '||', '||': '&&'}),
    ('arithmetic', r'(?<=[\w)\]]) (\+|-|\*|/|%) (?=[\w(])', {'+': '-', '-': '+', '*': '/', '/': '*', '%': '*'}),
    ('assignment', r' (\+=|-=|\*=|/=|\|=|&=) ', {'+=': '-=', '-=': '+=', '*=': '/=', '/=': '*=', '|=': '&=', '&=': '|='}),
    ('step', r'(\+\+|--)', {'++': '--', '--': '++'}),
    ('shift', r' (<<|>>) ', {'<<': '>>', '>>': '<<'}),
    ('negation', r'(?<=[ (&|,=])(!)(?=[\w(])', {'!': ''}),
]
NUMBER = re.compile(r'(?<![\w.\'"])(\d+(?:\.\d+)?(?:e-?\d+)?)(u|f|ull|ul)?(?![\w.\'"])')
STATEMENT = re.compile(r'^[ \t]+((?:\(void\))?[A-Za-z_][\w.>\-\[\]*]*(?:\([^;{}]*\)| (?:[+\-*/|&]?=) [^;{}]*))(;)[ \t]*$', re.M)
WORDS = ('return', 'goto', 'case', 'typedef', 'const', 'static', 'else', 'do', 'sizeof')
RELEASE = re.compile(r'free|close|unlock|destroy|release')  # what a leak checker is for: MODE=san
LOOP = re.compile(r'\bfor \(')
RELEASED = re.compile(r'\s*(?:if \([\w.>\[\]-]+\) )?[a-z_]\w*(?:free|close|unlock|destroy|release)\([^;{}]*\);')
CONDITION = re.compile(r'\b(?:if|while) \(')
ALLOCATOR = re.compile(r'\b(?:cd_mem_z?alloc|cd_arena_z?alloc|CD_NEWN)\(')
LOCAL_ARRAY = re.compile(r'^[ \t]+(?:const )?(?:unsigned |struct )?[a-z_]\w* (?:[^;(){}\n]*, )?([a-z_]\w*)((?:\[[^\]\n]*\])+)(?= = |;|, )', re.M)
LARGER = re.compile(r'(?:[(\[,] ?|[+*:] )$')  # before a constant that makes the sum or product larger when it gets larger
POINTER = r'!?[a-z_][\w.>\-\[\]*]*'
REFUSED = re.compile(rf'\bif \(({POINTER}(?: \|\| {POINTER})+)\)\s+(?:return|st =) [^;]*\bENOMEM\b|[ (]({POINTER}(?: && {POINTER})+) \? CDMPP_OK : CD_FAIL\([\w>\-]+, ENOMEM\b')


def blank(text):
    """The text with comments, strings and directives as spaces: every place stays where it was."""
    return HIDDEN.sub(lambda m: re.sub(r'[^\n]', ' ', m.group()), text)


def closing(code, at):
    """The place of the bracket that closes the one at `at`."""
    deep = 0
    for i in range(at, len(code)):
        if code[i] in '({[':
            deep += 1
        elif code[i] in ')}]':
            deep -= 1
            if not deep:
                return i
    return -1


def is_length(code, name, begin, end):
    """Does nothing depend on the length of this array but what fits in? sizeof only says to a call how much there is."""
    uses = re.finditer(rf'(.?)\bsizeof {name}\b(.?.?)', code[begin:end])
    return all(u.group(1) in ' (' and u.group(2)[:1] in ',)' and not re.search(r'[<>=/*+-] ?(\(\w+\))?$', code[:begin + u.start(0) + 1]) for u in uses)


def sizes(code, begin, end):
    """Spans of code[begin:end] whose constants are a size of memory."""
    out = [m.span(2) for m in LOCAL_ARRAY.finditer(code, begin, end) if is_length(code, m.group(1), m.end(), end)]
    return out + [(m.end() - 1, closing(code, m.end() - 1)) for m in ALLOCATOR.finditer(code, begin, end)]


def only_larger(code, at, spans):
    """Is the constant at `at` a summand, a factor or all of a size? Not what is subtracted, an index, an argument of a call."""
    for begin, end in spans:
        if begin <= at < end and LARGER.search(code, begin, at):
            inner = code[begin + 1:at]
            while re.search(r'[(\[][^()\[\]]*[)\]]', inner):
                inner = re.sub(r'[(\[][^()\[\]]*[)\]]', ' ', inner)
            return not re.search(r'\w\(|(?<!\])\[', inner) and not re.search(r'(?:[-/%]|>>) \(', inner)
    return False


def release_loops(code, begin, end):
    """Spans of heads of loops in code[begin:end] that only release things."""
    out = []
    for m in LOOP.finditer(code, begin, end):
        last = closing(code, m.end() - 1)
        if begin < last < end and RELEASED.match(code, last + 1, end):
            out.append((m.end(), last))
    return out


def functions(text):
    """(name, begin, end) of the body of each function that the file defines."""
    code, found = blank(text), []
    for m in HEAD.finditer(code):
        if found and m.start() < found[-1][2]:
            continue
        end = closing(code, m.end() - 1)
        if end > 0 and m.group(1) not in ('if', 'for', 'while', 'switch'):
            found.append((m.group(1), m.end(), end))
    return found


def changed_number(text):
    """A constant that is nearly right: 1024 for 1000, twice a real number, one more than a count."""
    if text == '1024':
        return '1000'
    if text == '1000':
        return '1024'
    if not text.isdigit():
        return repr(2 * float(text)) if float(text) else '1.0'
    return {'0': '1', '1': '2'}.get(text, str(int(text) + 1))


def sites(text, begin, end):
    """Every mutation of text[begin:end]: (kind, begin, end, new text)."""
    code, out = blank(text), []
    spans, refused = sizes(code, begin, end), [m.span(1 if m.group(1) else 2) for m in REFUSED.finditer(code, begin, end)]
    loops = release_loops(code, begin, end)

    def only_released(at):
        return any(a <= at < b for a, b in loops)

    for kind, pattern, other in OPERATORS:
        for m in re.compile(pattern).finditer(code, begin, end):
            if only_released(m.start(1)) or kind == 'logic' and any(a <= m.start() < b for a, b in refused):
                continue
            out.append((kind, m.start(1), m.end(1), other[m.group(1)]))
    for m in NUMBER.finditer(code, begin, end):
        if only_released(m.start(1)) or m.group(1) != '1024' and only_larger(code, m.start(1), spans):  # 1000 for 1024 is smaller
            continue
        out.append(('constant', m.start(1), m.end(1), changed_number(m.group(1))))
    for m in STATEMENT.finditer(code, begin, end):
        first = re.match(r'\w+', m.group(1).lstrip('(')).group()
        if first not in WORDS and not RELEASE.search(m.group(1).split('(')[0]) and not re.match(r'[a-z_0-9]+ \*?[a-z_]\w* =', m.group(1)):
            out.append(('statement', m.start(1), m.end(1), ''))
    for m in CONDITION.finditer(code, begin, end):
        last = closing(code, m.end() - 1)
        if 0 < last < end:
            out.append(('condition', m.end(), last, '!(' + text[m.end():last] + ')'))
    return out


def apply(text, site):
    kind, begin, end, new = site
    return text[:begin] + new + text[end:]
