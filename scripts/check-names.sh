#!/usr/bin/env bash
# A name means one thing:
#
#   structures   no struct, enum or union of src/ and include/ is defined twice
#   files        no name of a file stands in two rooms of src/
#   statics      few names of static functions and variables stand in two files of src/
#
# usage: check-names.sh [-v]; -v also lists the statics while they are few enough
set -eu
cd "$(dirname "$0")/.."

exec python3 - "$@" <<'EOP'
import collections, pathlib, re, sys

MAX_STATICS = 20

BLANKED = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'', re.S)
DIRECTIVE = re.compile(r'^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', re.M)
TAG = re.compile(r'\b(struct|enum|union)\s+(?:__attribute__\s*\(\(.*?\)\)\s*)?(\w+)\s*\{')
ATTRIBUTE = re.compile(r'__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)|_Alignas\s*\([^()]*\)')


def code_of(path):
    """The code without comments, literals and preprocessor lines."""
    text = BLANKED.sub(lambda m: '""' if m.group()[0] in '"\'' else ' ', path.read_text())
    return DIRECTIVE.sub('', text)


def outer_statements(code):
    """What stands outside of all braces, cut at ';' and at the end of each block."""
    statement, depth = '', 0
    for piece in re.split(r'([{};])', code):
        if piece == '{':
            depth += 1
            statement += '{' if depth == 1 else ''
        elif piece == '}':
            depth -= 1
            # A block after ')' is a function's body; any other belongs to a declaration.
            if depth == 0 and re.search(r'\)\s*\{$', statement):
                yield statement
                statement = ''
            elif depth == 0:
                statement += '}'
        elif depth == 0 and piece == ';':
            yield statement
            statement = ''
        elif depth == 0:
            statement += piece


def declarators(text):
    """The parts between commas that stand in no brackets."""
    part, depth = '', 0
    for char in text:
        depth += (char in '([{') - (char in ')]}')
        if char == ',' and depth == 0:
            yield part
            part = ''
        else:
            part += char
    yield part


def static_names(code):
    for statement in outer_statements(code):
        statement = ATTRIBUTE.sub(' ', statement).strip()
        if not re.match(r'(?:\w+\s+)*?static\b', statement):
            continue
        statement = re.sub(r'\b(struct|enum|union)\s+(\w*)\s*\{\}', r'\1 \2 ', statement)
        for declarator in declarators(statement):
            declarator = declarator.split('=')[0]
            name = re.search(r'\(\s*\*[\s*]*(?:const\s+)?(\w+)', declarator) \
                if re.match(r'[\w\s*]*\(\s*\*', declarator) \
                else re.match(r'[\w\s*]*?(\w+)\s*(?:[\[({]|$)', declarator)
            if not name:
                sys.exit(f'check-names.sh cannot read: {statement}')
            yield name.group(1)


def doubles(places):
    return {name: sorted(set(where)) for name, where in sorted(places.items()) if len(where) > 1}


def report(kind, found, allowed, verbose):
    if len(found) > allowed or verbose:
        for name, where in found.items():
            print(f'{kind} {name}: {" ".join(where)}')
    if len(found) > allowed:
        print(f'{kind}: {len(found)} stand more than once, at most {allowed} are allowed')
    return len(found) > allowed


tags, files, statics = (collections.defaultdict(list) for _ in range(3))
sources = sorted(p for top in ('src', 'include') for p in pathlib.Path(top).rglob('*.[ch]'))
for path in sources:
    code = code_of(path)
    for _, tag in TAG.findall(code):
        tags[tag].append(str(path))
    if path.parts[0] == 'src':
        files[path.name].append(str(path))
        for name in set(static_names(code)):
            statics[name].append(str(path))
if len(statics) < 100 or len(tags) < 50:
    sys.exit('too few names were found: this check reads nothing')
verbose = '-v' in sys.argv
bad = [report('structure', doubles(tags), 0, verbose), report('file', doubles(files), 0, verbose),
       report('static', doubles(statics), MAX_STATICS, verbose)]
sys.exit(any(bad))
EOP
