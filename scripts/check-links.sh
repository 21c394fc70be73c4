#!/usr/bin/env bash
# What the documents point to is there: files and headings that they link to, files of the tree that
# they name (NAME in one is anything), and in docs/ways.md every function, in the file that stands in
# front of it.
set -eu
cd "$(dirname "$0")/.."

exec python3 - <<'EOP'
import pathlib, re, sys

LINK = re.compile(r'\]\(([^)#\s]*)(?:#([^)\s]*))?\)')
NAMED = re.compile(r'`((?:src|include|scripts|tests|bench|man|docs)/[\w./-]+)`')


def headings(path):
    """The anchors that a reader of Markdown makes of the headings."""
    titles = re.findall(r'^#+ (.*)', path.read_text(), re.M)
    return {re.sub(r'[^\w -]', '', title.lower()).replace(' ', '-') for title in titles}


def problems(path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        for file, anchor in LINK.findall(line):
            target = path.parent / file if file else path
            if re.match(r'\w+:', file):
                continue
            if not target.exists():
                yield f'{path}:{number}: there is no {file}'
            elif anchor and anchor not in headings(target):
                yield f'{path}:{number}: {target} has no heading #{anchor}'
        for name in NAMED.findall(line):
            if 'NAME' not in name and not pathlib.Path(name).exists():
                yield f'{path}:{number}: there is no {name}'


def functions(path):
    """Those that a file defines: their names begin a line, or follow their type there."""
    return set(re.findall(r'^(?!\s|return)[\w *]*?\b(\w+)\([^;]*?\)\n\{', path.read_text(), re.M))


def lost_functions(path):
    everywhere = set().union(*map(functions, pathlib.Path('src').glob('*/*.[ch]')))
    for number, line in enumerate(path.read_text().splitlines(), 1):
        row = re.match(r'\| `(src/[\w/]+\.c)` \| `(\w+)\(\)` \|', line)
        for name in re.findall(r'`(\w+)\(\)`', line):
            if name not in everywhere and name != 'poll':
                yield f'{path}:{number}: there is no function {name}()'
        if row and row[2] not in functions(pathlib.Path(row[1])):
            yield f'{path}:{number}: {row[2]}() is not in {row[1]}'


documents = [*sorted(pathlib.Path().glob('*.md')), *sorted(pathlib.Path('docs').glob('*.md'))]
found = [problem for path in documents for problem in problems(path)]
found += lost_functions(pathlib.Path('docs/ways.md'))
print(*found, sep='\n', end='\n' if found else '')
sys.exit(bool(found))
EOP
