"""A writer of git configuration files, which keeps values from becoming other settings."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Setting:
    """One line of a configuration file."""

    section: str
    key: str
    value: str
    subsection: str = ""


def written(settings: Iterable[Setting]) -> bytes:
    """Format the file. Settings with characters that no such file can hold are left out."""
    rows: list[str] = []
    for each in settings:
        if "\n" in each.subsection or "\0" in each.subsection + each.value:
            continue
        head = f'[{each.section} "{_escaped(each.subsection)}"]' if each.subsection else f"[{each.section}]"
        value = _escaped(each.value).replace("\n", "\\n").replace("\t", "\\t")
        rows += [head, f'\t{each.key} = "{value}"']
    return ("\n".join(rows) + "\n").encode("utf-8", "surrogateescape")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
