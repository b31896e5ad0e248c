"""Checks of documents for people: links, headings, pictures, commands."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from cli import manual
from cli.invocation.aliases import expand
from cli.main import NOUNS, command_of, root
from tests.written import ROOT

DOCUMENTS = sorted(
    path
    for folder in (
        *("", ".github", "workflows", "workflows/tree", "activities", "bridge", "cli", "tests"),
        *("cli/topics", "dev-cluster/site"),
    )
    for path in (ROOT / folder).glob("*.md")
)
"""Every document for people."""

_FENCED = re.compile(r"^ *```[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`(service\s[^`]+)`")
_TYPED = re.compile(r"^\s*(?:\$ )?(?:[A-Z_]+=\S+ )*(service .*)$", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"")
_SCRIPT = re.compile(r"(?<![\w/])(dev-cluster/[\w.-]*\w)")
_MODULE = re.compile(r"python3? (?:-P )?-m ([\w.]*\w)")
_OPTION = re.compile(r"--[a-z][a-z-]*")


def without_code(text: str) -> str:
    return _FENCED.sub("", text)


def links(text: str) -> Iterator[str]:
    """Yield the targets of links and pictures outside code."""
    for in_markdown, in_html in _LINK.findall(re.sub(r"`[^`]*`", "code", without_code(text))):
        yield in_markdown or in_html


def anchors(text: str) -> set[str]:
    """Return the anchors of a page: its headings, as GitHub writes them."""
    headings = re.findall(r"^#+ (.+)$", without_code(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def leads_nowhere(page: Path) -> list[str]:
    """Return a document's links to missing files or headings."""
    text = page.read_text()
    wrong = []
    for link in links(text):
        if "://" in link:
            continue
        name, _, heading = link.partition("#")
        to = page.parent / name if name else page
        if not to.exists() or (heading and heading not in anchors(to.read_text())):
            wrong.append(link)
    return wrong


def missing_files(text: str) -> list[str]:
    """Return the scripts (`dev-cluster/NAME`) and modules (`python -m NAME`) in a document that do not exist."""
    modules = [name.replace(".", "/") for name in _MODULE.findall(text) if name.startswith(("tests", "cli", "bridge"))]
    named = [*_SCRIPT.findall(text), *(f"{name}.py" if (ROOT / f"{name}.py").exists() else name for name in modules)]
    return [name for name in named if not (ROOT / name).exists()]


def commands(text: str) -> Iterator[str]:
    """Yield every `service` command in code, a line each."""
    for block in _FENCED.findall(text):
        yield from (line.partition("  #")[0] for line in _TYPED.findall(block))
    yield from (" ".join(span.replace("\\|", "|").split()) for span in _SPAN.findall(without_code(text)))


def wrong_in(command: str) -> str:
    """Return the first unknown word of a command as documents write it (`agent ask|review NAME [--wait]`), or ""."""
    words = command.partition(" && ")[0].split()[1:]
    if not words or words[0].isupper() or words[0].startswith("-"):
        known = {option for entry in root().params for option in entry.opts} | {"--help", "-h"}
        return next((word for word in words if word.startswith("-") and word not in known), "")
    if words[0] == "help":
        return _wrong_page(words[1:])
    words = expand(words)
    if words[0] not in NOUNS:
        return words[0]
    leaves, wrong = _walked([command_of(words[0])], words[1:])
    known = {option for leaf in leaves for entry in leaf.params for option in (*entry.opts, *entry.secondary_opts)}
    options = _OPTION.findall(re.sub(r"\"[^\"]*\"|'[^']*'", "", command))
    return wrong or next((option for option in options if option not in known | {"--help"}), "")


def _wrong_page(words: Sequence[str]) -> str:
    named = [word for word in words if not word.startswith(("[", "-")) and not word.isupper()]
    if not named or " ".join(named) in {page.name for page in manual.pages()}:
        return ""
    wrong = manual.not_a_command(named)
    return wrong.message if wrong else ""


def _walked(commands: list[Any], words: Sequence[str]) -> tuple[list[Any], str]:
    """Return the commands of these words, both for `a|b`, and the first unknown word."""
    for word in words:
        below = {name: child for command in commands for name, child in getattr(command, "commands", {}).items()}
        if not below or not re.fullmatch(r"[a-z|-]+", word) or word.startswith("-"):
            break
        named = word.split("|")
        if strange := [name for name in named if name not in below]:
            return commands, strange[0]
        commands = [below[name] for name in named]
    return commands, ""
