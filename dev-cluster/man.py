"""Man pages from the catalogue of commands, which `service help --json` prints too.

click-man knows only options of Click's own class. Typer has classes of its own, so its pages would list no option.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from itertools import groupby
from pathlib import Path

from cli import commands
from cli.commands import CommandEntry, Parameter
from cli.invocation.aliases import ALIASES
from cli.invocation.exit_codes import EXIT_CODES
from cli.main import NOUNS, PANELS

TITLE = '.TH "{name}" 1 "" "service {version}" "Manual of service"'


def pages() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each page."""
    yield "service", _joined(_first())
    for noun, group in groupby(commands.every(), key=lambda command: command.command.split()[0]):
        yield f"service-{noun}", _joined(_page(noun, list(group)))


def _first() -> Iterator[str]:
    yield from _head("service", "coding agents that work as a team")
    yield from (".SH SYNOPSIS", ".B service", "COMMAND [OPTIONS] [ARGUMENTS]")
    yield from (".SH DESCRIPTION", text("Runs coding agents as trees of delegated jobs: durable, bounded, never lost."))
    yield from _parameters(commands.options_of_all())
    for group, nouns in PANELS.items():
        yield f".SH {text(group.upper())}"
        for noun, says in nouns.items():
            yield from (".TP", f".BR service\\-{text(noun)} (1)", text(says))
    yield ".SH SHORT WAYS"
    for alias, path in ALIASES.items():
        yield from (".TP", f".B service {text(alias)}", text(f"service {path}"))
    yield from _end([])


def _page(noun: str, verbs: list[CommandEntry]) -> Iterator[str]:
    yield from _head(f"service-{noun}", NOUNS[noun])
    yield ".SH SYNOPSIS"
    yield ".br\n".join(f".B service {text(verb.command)}\n{_usage(verb)}\n" for verb in verbs).rstrip("\n")
    yield ".SH DESCRIPTION"
    for verb in verbs:
        yield from (f".SS service {text(verb.command)}", text(verb.help))
        if verb.alias:
            yield from (".PP", text(f"In short: service {verb.alias}"))
        yield from _parameters([*verb.arguments, *verb.options])
        yield from (".PP", "Example:", ".PP", ".in +4n", ".EX", text(verb.example), ".EE", ".in")
    yield from _end(verbs)


def _head(name: str, says: str) -> Iterator[str]:
    yield TITLE.format(name=text(name.upper()), version=version("delegation-service"))
    yield from (".SH NAME", f"{text(name)} \\- {text(says)}")


def _usage(command: CommandEntry) -> str:
    needed = [f"{option.name} {option.value}" for option in command.options if option.required]
    arguments = [each.name if each.required or "[" in each.name else f"[{each.name}]" for each in command.arguments]
    return text(" ".join([*needed, "[OPTIONS]", *arguments]))


def _parameters(parameters: Iterable[Parameter]) -> Iterator[str]:
    for each in parameters:
        names = ", ".join(f"\\fB{text(name)}\\fR" for name in (each.name, *each.also))
        yield from (".TP", f"{names} \\fI{text(each.value)}\\fR" if each.name.startswith("-") and each.value else names)
        yield text(f"{each.help}{_notes(each)}")


def _notes(parameter: Parameter) -> str:
    notes = [*(["required"] if parameter.required else []), *(["may be repeated"] if parameter.repeated else [])]
    if parameter.least is not None:
        most = "or more" if parameter.most is None else f"to {parameter.most}"
        notes.append(f"{parameter.least} {most}")
    if parameter.default not in (None, False, ""):
        notes.append(f"default: {parameter.default}")
    return f" ({'; '.join(notes)})" if notes else ""


def _end(verbs: list[CommandEntry]) -> Iterator[str]:
    yield ".SH EXIT STATUS"
    for code, means in EXIT_CODES.items():
        own = {verb.command: verb.exit_codes[code] for verb in verbs if verb.exit_codes[code] != means}
        yield from (".TP", str(code), text("; ".join([means, *(f"of {path}: {says}" for path, says in own.items())])))
    yield from (".SH SEE ALSO", ".BR service (1)," if verbs else ".BR service\\-help (1),", text("service help TOPIC"))


def text(plain: str) -> str:
    """Escape text for troff."""
    escaped = plain.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"(?m)^([.'])", r"\\&\1", escaped)


def _joined(lines: Iterable[str]) -> str:
    return "\n".join(lines) + "\n"


def main(folder: Path) -> None:
    """Write all pages into the folder's `man1`."""
    place = folder / "man1"
    place.mkdir(parents=True, exist_ok=True)
    for name, page in pages():
        (place / f"{name}.1").write_text(page, encoding="utf-8")
    print(f"wrote {len(list(place.glob('service*.1')))} pages to {place.resolve()}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
