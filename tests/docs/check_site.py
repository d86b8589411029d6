"""Builds the site of mkdocs.yml without a warning, and checks that its pages need no other host: python check_site.py FOLDER"""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What a browser loads by itself: scripts, style sheets, images, fonts. Links (<a href>) are followed by readers only.
LOADED = (
    re.compile(r"<(?:script|img|iframe|source|video)\b[^>]*\bsrc=[\"']?((?:https?:)?//[^\"'\s>]+)"),
    re.compile(r"<link\b(?=[^>]*\brel=[\"']?(?:stylesheet|preload|preconnect|icon))[^>]*\bhref=[\"']?((?:https?:)?//[^\"'\s>]+)"),
    re.compile(r"(?:url\(|@import\s+)[\"']?((?:https?:)?//[^\"'\s)]+)"),
)
PAGES = ("index.html", "docs/tutorial.html", "docs/gallery.html", "docs/faq.html", "docs/theory.html", "kernels/index.html")


def problems_of_file(path, folder):
    text = path.read_text(errors="replace")
    for pattern in LOADED:
        for address in pattern.findall(text):
            yield f"{path.relative_to(folder)} loads {address}"
    if path.suffix == ".html" and "class=\"mermaid\"" in text:
        yield f"{path.relative_to(folder)} has a diagram whose script comes from another host"
    if path.suffix == ".html":
        for target in re.findall(r"<img\b[^>]*\bsrc=[\"']?([^\"'\s>]+)", text):
            if not re.match(r"(?:[a-z]+:|//)", target) and not (path.parent / target).exists():
                yield f"{path.relative_to(folder)} shows {target}, which is not there"


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", ROOT / "mkdocs.yml",
                    "--site-dir", folder], check=True, env=dict(os.environ, NO_MKDOCS_2_WARNING="1"))
    problems = [f"there is no {page}" for page in PAGES if not (folder / page).exists()]
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".html", ".css"):
            problems += problems_of_file(path, folder)
    for problem in problems:
        print("PROBLEM:", problem)
    print(len(list(folder.rglob("*.html"))), "pages in", folder)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
