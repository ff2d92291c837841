"""Where a C source can be made wrong, and how: functions of a file and the mutations that each allows.

A mutation is one small change that a tired engineer could make: a comparison off by one, a sign, a constant, a
condition the wrong way round, a statement that is missing. Comments, strings and declarations stay as they are.
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
CONDITION = re.compile(r'\b(?:if|while) \(')


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
    for kind, pattern, other in OPERATORS:
        for m in re.compile(pattern).finditer(code, begin, end):
            out.append((kind, m.start(1), m.end(1), other[m.group(1)]))
    for m in NUMBER.finditer(code, begin, end):
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
