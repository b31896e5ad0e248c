"""The common layout of help texts: no boxes, at most 80 columns, whole sentences, values in capitals."""

import re
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from cli.drawing.lines import END, Piece, ScreenLine, Tone
from cli.invocation.examples import EXAMPLES
from cli.invocation.parameters import ValueKind, kinds

_NEEDED = r"\{([^{}]*)\}"
_TWICE = r"\[(\[[^\[\]]*\])\]"
"""Brackets and dots that some releases of Typer put around a placeholder that has its own."""
_HEADING = "(?m)^(Usage:|[A-Z][a-z ]+:$)"
_STRONG = f"\x1b[{Tone.STRONG.value}m"
_TYPE = r" <[^<>]*>(\.\.\.)?$"
"""The type behind an argument's placeholder, which some releases of Typer print."""
_VALUES = {int: "N", float: "N", Path: "PATH"}
"""Placeholders of options whose value has no name of its own; of all others, `TEXT`."""


VERB_PANELS = {
    "agent": {"Ask": "ask review implement", "Register": "add list show remove allow deny"},
    "job": {
        "See": "list show tree events log prompt branches diff",
        "Finish": "merge resolve revise review gate publish drop",
        "Decide": "retry kill dismiss",
        "Reviews of your own": "open note close reviews",
    },
    "pipeline": {"Register": "add list show enable disable remove", "Run": "run runs watch cancel"},
}
"""Headings for the verbs of large groups. A verb that is not listed comes under `Commands`."""


def dress(command: Any, path: str) -> None:
    """Apply the common layout to the command with this path after `service`, and to all its subcommands."""
    command.context_class = _context_of(command.context_class)
    command.short_help = command.short_help or _sentence(command.help or "")
    known = kinds(command.callback)
    for parameter in command.params:
        if parameter.metavar is None and not getattr(parameter, "is_flag", False):
            parameter.metavar = _placeholder(parameter, known[parameter.name])
    below = getattr(command, "commands", {})
    if below and path in VERB_PANELS:
        command.format_commands = partial(_write_verbs, below, VERB_PANELS[path])
    if path in EXAMPLES:
        command.format_epilog = partial(_write_example, EXAMPLES[path])
    for name, child in below.items():
        dress(child, f"{path} {name}".strip())


def write_panels(formatter: Any, panels: Mapping[str, Sequence[tuple[str, str]]]) -> None:
    """Write commands and their descriptions under headings, all in the same columns."""
    width = max(len(name) for rows in panels.values() for name, _ in rows)
    for heading, rows in panels.items():
        with formatter.section(heading):
            formatter.write_dl([(name.ljust(width), says) for name, says in rows])


def _write_verbs(below: Mapping[str, Any], panels: Mapping[str, str], context: Any, formatter: Any) -> None:
    del context
    shown = {name: command.get_short_help_str(80) for name, command in below.items() if not command.hidden}
    listed = {heading: [name for name in verbs.split() if name in shown] for heading, verbs in panels.items()}
    others = [name for name in shown if name not in {name for verbs in listed.values() for name in verbs}]
    listed |= {"Commands": others} if others else {}
    write_panels(formatter, {heading: [(name, shown[name]) for name in verbs] for heading, verbs in listed.items()})


def _write_example(example: str, context: Any, formatter: Any) -> None:
    del context
    with formatter.section("Example"):
        formatter.write_text(example)


def line(text: str) -> ScreenLine:
    """Convert a line of a help text for `tell`."""
    match = re.match(_HEADING, text)
    return ScreenLine(Piece(match[0], Tone.STRONG), text[match.end() :]) if match else ScreenLine(text)


def without_colours(text: str) -> str:
    """Remove the colours of a help text."""
    return text.replace(_STRONG, "").replace(END, "")


def usage_of(context: Any) -> str:
    """Return the command's usage on one line."""
    return " ".join(without_colours(context.get_usage()).split()).removeprefix("Usage: ")


def _placeholder(parameter: Any, kind: ValueKind) -> str:
    """Return the placeholder of a parameter: an argument's name, or the type of an option's value."""
    if parameter.param_type_name == "argument":
        return f"{parameter.name.upper()}{'...' if parameter.nargs != 1 else ''}"
    return _VALUES.get(kind.type, "TEXT")


def _sentence(text: str) -> str:
    """Return the first sentence."""
    first = " ".join(text.split("\n\n")[0].split())
    return first.partition(". ")[0].rstrip(".") + "." if first else ""


def _context_of(usual: Any) -> Any:
    """Return a subclass of the context class whose help texts have the common layout."""

    class Formatter(usual.formatter_class):  # type: ignore[misc]
        def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
            args = re.sub(_NEEDED, r"\1", args)
            args = re.sub(_TWICE, r"\1", args).replace("......", "...").replace("...]...", "...]")
            super().write_usage(prog, args, prefix)

        def write_dl(self, rows: Sequence[tuple[str, str]], *sizes: int, **named: int) -> None:
            super().write_dl([(re.sub(_TYPE, "", name), text) for name, text in rows], *sizes, **named)

        def getvalue(self) -> str:
            from cli.drawing.screens import screen_of

            screen, text = screen_of(sys.stdout), str(super().getvalue())
            if screen is None or not screen.colours:
                return text
            return re.sub(_HEADING, lambda match: f"{_STRONG}{match[0]}{END}", text)

    return type("HelpContext", (usual,), {"formatter_class": Formatter})
