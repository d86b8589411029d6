"""Hooks of mkdocs.yml: pages keep their place in the repository, README.md is the first one.

Links between README.md, docs/, kernels/ and data/ then are the same on the site, on GitHub and in an installation.
"""

import pathlib
import re

from mkdocs.structure.files import File, Files

ROOT = pathlib.Path(__file__).resolve().parents[1]
OUTSIDE_DOCS = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE", "CITATION.cff", "data/README.md")
TEST_MARK = re.compile(r"^<!-- (docs-test|report|picture): .*? -->\n", re.MULTILINE)
FOLDER_LINK = re.compile(r"\]\(([^):#]*/)\)")


def on_files(files, config):
    """Replaces the files of docs/ by those of the repository that the site shows, with their paths in the repository."""
    paths = [ROOT / name for name in OUTSIDE_DOCS]
    for pattern in ("docs/**/*.md", "docs/**/*.png", "docs/**/*.gif", "docs/**/*.toml", "docs/*.c", "kernels/**/README.md"):
        paths += sorted(ROOT.glob(pattern))
    themes = [file for file in files if file.src_dir != config.docs_dir]
    pages = [File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path)) for path in paths]
    return Files(themes + pages)


def on_page_markdown(markdown, **_):
    """Leaves out marks for tools; a link to a folder leads to its README.md."""
    return FOLDER_LINK.sub(r"](\1README.md)", TEST_MARK.sub("", markdown))
