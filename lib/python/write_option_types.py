"""Writes the types of the options of a measurement, from the table in the extension: FOLDER_OF_EXTENSION OUTPUT"""

import keyword
import sys

TYPES = {
    "flag": "bool",
    "integer": "int",
    "number": "float",
    "choice": None,
    "text": "str",
    "file": "str | os.PathLike[str]",
    "rect": "tuple[int, int, int, int]",
    "polygons": "Sequence[Sequence[tuple[float, float]]]",
}
# Written out in the functions themselves.
ARGUMENTS = {"reference", "roi", "output", "times", "fps"}


def type_of(option):
    literal = ", ".join(repr(choice) for choice in option["choices"])
    kind = TYPES[option["kind"]]
    if option["name"] == "order":
        return f"int | Literal[{literal}]"
    if kind is None:
        return f"Literal[{literal}]"
    return f"{kind} | Literal[{literal}]" if literal else kind


def main(folder, output):
    sys.path.insert(0, folder)
    import _dic

    lines = [
        '"""Types of the options of a measurement, from the library\'s table."""',
        "",
        "import os",
        "from collections.abc import Sequence",
        "from typing import Literal, TypedDict",
        "",
        "",
        "class Options(TypedDict, total=False):",
    ]
    for option in _dic.track_options():
        if option["name"] not in ARGUMENTS:
            name = option["name"].replace("-", "_")
            name += "_" if keyword.iskeyword(name) else ""
            lines += [f"    {name}: {type_of(option)}", f'    """{option["help"]}"""']
    with open(output, "w") as file:
        file.write("\n".join(lines) + "\n")


main(*sys.argv[1:])
