"""Checks what the shared libraries export: python check_exports.py SOURCE_FOLDER NM LIBDIC PROGRAM [MODULE=FUNCTION ...]

Public headers mark with DIC_API what libdic exports to everybody, rooms mark with DIC_INTERNAL_API what it exports to the
program and to its modules (lib/shared/include/dic/shared/export.hpp); one of them must need it. A module exports the one function
by which it is loaded.
check_exports_test.py proves that violations are found.
"""

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

PUBLIC_MARKS, INTERNAL_MARK = {"DIC_API", "DIC_C_API"}, "DIC_INTERNAL_API"
PUBLIC_FOLDERS = ("lib/include", "lib/shared/include")
NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|^[ \t]*#(?:\\\n|[^\n])*', re.DOTALL | re.MULTILINE)
SCOPE = re.compile(r"^(?:template\s*<.*>\s*)?(class|struct|union|namespace)\b\s*((?:[A-Z_]+\s+)*)([\w:]*)[^(=]*$", re.DOTALL)
NO_FUNCTION = re.compile(r"^(using|typedef|friend|static_assert|enum|extern\s+template)\b")
FUNCTION_NAME = re.compile(r"(operator\s*[^\s\w(]+|operator\s*\(\)|~?\w+)\s*$")
ABOUT_CLASS = re.compile(r"^(?:typeinfo name|typeinfo|vtable|VTT) for (.*)$")
BRACKETS = {"(": 1, "[": 1, "{": 1, "<": 1, ")": -1, "]": -1, "}": -1, ">": -1}


@dataclass
class Scope:
    name: str
    is_public: bool = True  # for a namespace: not that of a room, whose functions a public header may befriend
    is_class: bool = False
    marks: frozenset = frozenset()  # of a class, for its members


@dataclass(frozen=True)
class Declaration:
    """A function without body, or a class."""

    name: str  # with namespaces and classes
    parameters: int  # number of a function's parameters; -1: a class
    marks: frozenset
    is_callable: bool  # public, or called by code of the header


@dataclass(frozen=True)
class Header:
    path: Path
    is_public: bool
    declarations: list


def without_comments(text):
    """The text with comments, strings and preprocessor lines replaced by spaces: positions stay."""
    return NO_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def outside_brackets(text):
    """Pairs (position, character) of the characters that are in no brackets, with the opening brackets."""
    depth = 0
    for i, c in enumerate(text):
        if depth == 0:
            yield i, c
        depth += BRACKETS.get(c, 0)


def parameter_count(parameters):
    if parameters.strip() in ("", "void"):
        return 0
    return 1 + sum(c == "," for _, c in outside_brackets(parameters))


def closing(text, begin):
    """The position of the bracket that closes the one at `begin`."""
    depth = 0
    opened, closed = text[begin], {"{": "}", "(": ")"}[text[begin]]
    for i in range(begin, len(text)):
        depth += (text[i] == opened) - (text[i] == closed)
        if depth == 0:
            return i
    raise ValueError(f"no {closed} follows {text[begin:begin + 60]!r}")


def declared_function(statement):
    """(name, number of parameters) of a function that a statement declares without defining it; None: it declares none."""
    if NO_FUNCTION.match(statement) or re.search(r"=\s*(0|default|delete)\s*$", statement):
        return None
    for i, c in outside_brackets(statement):
        if c == "=" and not re.search(r"operator\s*[^\s\w]*$", statement[:i]):
            return None
        name = FUNCTION_NAME.search(statement[:i]) if c == "(" else None
        if name:
            return name.group(1).replace(" ", ""), parameter_count(statement[i + 1 : closing(statement, i)])
    return None


def qualified(scopes, *names):
    return "::".join([*(scope.name for scope in scopes if scope.name), *names])


def is_called(code, name, scope):
    """Whether a function is called beside its declaration; False for constructors, whose calls look like declarations."""
    return name != scope.name and len(re.findall(rf"(?<!~)\b{re.escape(name)}\s*\(", code)) > 1


def declarations_of(text):
    """Classes, and functions without body, outside of functions."""
    code = without_comments(text)
    scopes = [Scope("")]
    begin = i = 0
    while i < len(code):
        c, statement = code[i], code[begin:i].strip()
        is_public = all(scope.is_public for scope in scopes)
        if c == "(":
            i = closing(code, i)
        elif c == ":" and statement in ("public", "protected", "private"):
            scopes[-1].is_public = statement != "private"
            begin = i + 1
        elif c == "{" and (statement == "extern" or SCOPE.match(statement)):
            found = SCOPE.match(statement)
            kind, marks, name = found.groups() if found else ("namespace", "", "")
            is_class = kind != "namespace"
            is_open = kind != "class" if is_class else name in ("", "dic")
            scopes.append(Scope(name, is_open, is_class, frozenset(marks.split())))
            if is_class:
                yield Declaration(qualified(scopes), -1, scopes[-1].marks, is_public)
            begin = i + 1
        elif c == "{":
            i = closing(code, i)
            if code[i + 1 :].lstrip()[:1] not in (";", ",", "{"):  # else an initializer
                begin = i + 1
        elif c == "}":
            scopes.pop()
            begin = i + 1
        elif c == ";":
            function = declared_function(re.sub(r"^template\s*<[^()]*?>\s*(?=\w)", "", statement))
            if function:
                name, parameters = function
                marks = scopes[-1].marks.union(re.findall(r"\bDIC_\w+\b", statement))
                is_callable = is_public or scopes[-1].is_class and is_called(code, name, scopes[-1])
                yield Declaration(qualified(scopes, name), parameters, marks, is_callable)
            begin = i + 1
        i += 1


def headers_of(root):
    for path in sorted((root / "lib").rglob("*")):
        relative = path.relative_to(root)
        if path.suffix in (".hpp", ".h"):
            is_public = any(relative.is_relative_to(folder) for folder in PUBLIC_FOLDERS)
            yield Header(relative, is_public, list(declarations_of(path.read_text(encoding="utf-8"))))


def dynamic_symbols(nm, file, which):
    """The demangled names that a program or shared library defines for others, or needs: "defined" or "undefined"."""
    command = [nm, "-D", f"--{which}-only", "-C", file]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)
    return sorted({re.sub(r"^[0-9a-f]*\s+\w ", "", line) for line in listed.stdout.splitlines()})


def opening(text):
    """The position of the bracket that is closed by the last character."""
    depth = 0
    for i in range(len(text) - 1, -1, -1):
        depth -= BRACKETS.get(text[i], 0)
        if depth == 0:
            return i
    raise ValueError(f"no bracket opens {text!r}")


def function_of(symbol):
    """(name, number of parameters) of a demangled C++ function; None: the symbol is none."""
    symbol = symbol.replace("[abi:cxx11]", "").replace("(anonymous namespace)", "{anonymous}")
    symbol = re.sub(r"\s*(const|volatile|&|&&)$", "", symbol)
    if not symbol.endswith(")"):
        return None
    begin = opening(symbol)
    name = symbol[:begin]
    if name.endswith(">") and "operator" not in name:  # the arguments of a template
        name = name[: opening(name)]
    spaces = [at for at, c in outside_brackets(name) if c == " "]
    return name[spaces[-1] + 1 if spaces else 0 :], parameter_count(symbol[begin + 1 : -1])


def marked(headers, marks):
    return [declared for header in headers for declared in header.declarations if declared.marks & marks]


def problems_of_headers(headers):
    for header in headers:
        wrong = {INTERNAL_MARK} if header.is_public else PUBLIC_MARKS
        for declared in header.declarations:
            if declared.marks & wrong:
                kind = "public header" if header.is_public else "room"
                yield f"{header.path}: {declared.name} is declared with {'/'.join(declared.marks & wrong)} in a {kind}"
            elif header.is_public and declared.is_callable and declared.parameters >= 0 and not declared.marks & PUBLIC_MARKS:
                yield f"{header.path}: {declared.name} is public and not inline, but is not declared with DIC_API"


def problems_of_exports(headers, symbols):
    declared = marked(headers, PUBLIC_MARKS | {INTERNAL_MARK})
    functions = {(found.name, found.parameters) for found in declared if found.parameters >= 0}
    c_functions = {name for name, _ in functions if "::" not in name}
    classes = {found.name for found in declared if found.parameters < 0}
    exported = set()
    for symbol in symbols:
        of_class = ABOUT_CLASS.match(symbol)
        exported |= {symbol, function_of(symbol)}
        if not (symbol in c_functions or function_of(symbol) in functions or of_class and of_class.group(1) in classes):
            yield f"libdic exports {symbol}, which no header marks"
    for name, parameters in sorted(functions):
        if name not in exported and (name, parameters) not in exported:
            yield f"libdic does not export {name} with {parameters} parameters, which a header marks"


def problems_of_internals(headers, needed):
    """A member of a marked class may have no caller: it is in the virtual table."""
    declared = marked(headers, {INTERNAL_MARK})
    classes = {found.name for found in declared if found.parameters < 0}
    used = {function_of(symbol) for symbol in needed}
    for found in declared:
        of_class = found.name in classes or found.name.rpartition("::")[0] in classes
        if not of_class and (found.name, found.parameters) not in used:
            yield f"nobody needs {found.name} with {found.parameters} parameters, which is declared with {INTERNAL_MARK}"


def problems_of_module(headers, function, symbols):
    classes = {found.name for found in marked(headers, PUBLIC_MARKS | {INTERNAL_MARK}) if found.parameters < 0}
    if function not in symbols:
        yield f"the module of {function} does not export it"
    for symbol in symbols:
        of_class = ABOUT_CLASS.match(symbol)
        if symbol != function and not (of_class and of_class.group(1) in classes):
            yield f"the module of {function} exports {symbol}"


def main():
    root, nm, libdic, program, *modules = sys.argv[1:]
    modules = dict(module.rsplit("=", 1) for module in modules)
    headers = list(headers_of(Path(root).resolve()))
    symbols = dynamic_symbols(nm, libdic, "defined")
    needed = [symbol for file in (program, *modules) for symbol in dynamic_symbols(nm, file, "undefined")]
    found = [
        *problems_of_headers(headers),
        *problems_of_exports(headers, symbols),
        *problems_of_internals(headers, needed),
    ]
    for file, function in modules.items():
        found += problems_of_module(headers, function, dynamic_symbols(nm, file, "defined"))
    print("\n".join(symbols))
    for problem in found:
        print(f"PROBLEM: {problem}")
    print(f"{len(symbols)} exported symbols, {len(found)} problems")
    return 1 if found or not symbols else 0


if __name__ == "__main__":
    sys.exit(main())
