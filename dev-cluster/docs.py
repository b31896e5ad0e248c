"""Puts the documents into one folder for zensical, and checks the site that it makes of them.

Documents link each other as files of the repository, for GitHub; the site has them in other places, so every link is
written anew. A link that leads to no page, heading or file of the site is an error.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parents[1]
PAGES = {
    "dev-cluster/site/index.md": "index.md",
    "README.md": "tour.md",
    "cli/topics/README.md": "manual/index.md",
    ".github/SECURITY.md": "project/security.md",
    ".github/CHANGELOG.md": "project/changelog.md",
    ".github/CONTRIBUTING.md": "project/contributing.md",
    "workflows/README.md": "code/workflows.md",
    "workflows/RULES.md": "code/rules.md",
    "workflows/tree/README.md": "code/tree.md",
    "activities/README.md": "code/activities.md",
    "activities/settings/README.md": "code/settings.md",
    "bridge/README.md": "code/bridge.md",
    "cli/README.md": "code/cli.md",
    "cli/warm/README.md": "code/warm.md",
    "tests/README.md": "code/tests.md",
}
"""Each document and its place on the site. Pages of the manual are in `manual/` there, pictures in `pictures/`."""

_FENCED = re.compile(r"(^ *```.*?^ *```)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[((?:`[^`]*`|[^\[\]`])*)\]\(([^)\s]+)\)")
_SPAN = re.compile(r"`[^`\n]*`")
_LOADS = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src"), ("source", "src")}


def places() -> dict[Path, str]:
    """Return the place on the site of every document and picture."""
    manual = {f"cli/topics/{path.name}": f"manual/{path.name}" for path in (ROOT / "cli/topics").glob("*.md")}
    pictures = {f".github/pictures/{path.name}": f"pictures/{path.name}" for path in pictures_of(ROOT)}
    return {ROOT / source: place for source, place in (manual | pictures | PAGES).items()}


def pictures_of(root: Path) -> list[Path]:
    """Return the pictures that documents show."""
    return sorted((root / ".github/pictures").iterdir())


def moved(source: Path, known: dict[Path, str]) -> str:
    """Return a document with its links as they are on the site; of a link to code, only its text."""

    def link(match: re.Match[str]) -> str:
        text, (path, _, heading) = match[1], match[2].partition("#")
        if "://" in path or not path:
            return match[0]
        target = Path(os.path.normpath(source.parent / path))
        if target not in known:
            if target.suffix == ".md" or not target.exists():
                sys.exit(f"error: {source.relative_to(ROOT)} links {path}, which is no page of the site")
            return text
        there = os.path.relpath(known[target], Path(known[source]).parent)
        return f"[{text}]({there}#{heading})" if heading else f"[{text}]({there})"

    parts = _FENCED.split(source.read_text(encoding="utf-8"))
    return "".join(part if at % 2 else _SPAN.sub(_unescaped, _LINK.sub(link, part)) for at, part in enumerate(parts))


def _unescaped(code: re.Match[str]) -> str:
    """Return a code span as zensical needs it: GitHub wants `|` escaped in cells of tables."""
    return code[0].replace("\\|", "|")


def stage(folder: Path) -> None:
    """Write the site's configuration, pages and pictures into an empty folder."""
    known = places()
    for source, place in known.items():
        to = folder / "pages" / place
        to.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            to.write_text(moved(source, known), encoding="utf-8")
        else:
            shutil.copyfile(source, to)
    shutil.copyfile(ROOT / "dev-cluster/site/zensical.toml", folder / "zensical.toml")


class _Page(HTMLParser):
    """The ids and links of one page, and what it loads from elsewhere."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids, self.links, self.foreign = set[str](), list[str](), list[str]()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.ids.add(value)
            elif name in ("href", "src") and value:
                self.links.append(value)
                if urlsplit(value).netloc and (tag, name) in _LOADS:
                    self.foreign.append(value)


def faults(site: Path) -> Iterator[str]:
    """Yield links of a built site that lead nowhere, and what its pages load from another host."""
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        name = path.relative_to(site)
        yield from (f"{name} loads {each}" for each in page.foreign)
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or path.name == "404.html":
                continue
            to = Path(os.path.normpath(path.parent / unquote(parts.path))) if parts.path else path
            to = to / "index.html" if to.is_dir() else to
            heading = unquote(parts.fragment)
            if not to.is_file():
                yield f"{name} links {link}: no such page"
            elif heading and to in pages and heading not in pages[to].ids:
                yield f"{name} links {link}: no such heading"


def main() -> None:
    """Put the documents into a folder, or check the site that was made of them."""
    match sys.argv[1:]:
        case ["stage", folder]:
            stage(Path(folder))
        case ["check", folder]:
            wrong = list(faults(Path(folder)))
            sys.exit("\n".join(wrong) if wrong else 0)
        case _:
            sys.exit("usage: docs.py stage|check FOLDER")


if __name__ == "__main__":
    main()
