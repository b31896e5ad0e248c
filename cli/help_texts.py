"""One look for every help text: no boxes, at most 80 columns, whole sentences, values in capitals."""

import re
import sys
from typing import Any

from cli.drawing.lines import Line, Piece
from cli.drawing.looks import END, Look

_NEEDED = r"\{([^{}]*)\}"
_HEADING = "(?m)^(Usage:|[A-Z][a-z]+:$)"
_STRONG = f"\x1b[{Look.STRONG.value}m"
_VALUES = {"str": "TEXT", "int": "N", "int range": "N", "float": "N", "path": "PATH", "file": "PATH"}
"""What stands behind an option whose value has no name of its own."""


def dress(command: Any) -> None:
    """Give a command and all below it this look."""
    command.context_class = _context_of(command.context_class)
    command.short_help = command.short_help or _sentence(command.help or "")
    for each in command.params:
        if each.metavar is None and not getattr(each, "is_flag", False):
            each.metavar = _value(each)
    for below in getattr(command, "commands", {}).values():
        dress(below)


def line(text: str) -> Line:
    """A line of a help text for `tell`."""
    found = re.match(_HEADING, text)
    return Line(Piece(found[0], Look.STRONG), text[found.end() :]) if found else Line(text)


def uncoloured(text: str) -> str:
    """A help text as it is where there are no colours."""
    return text.replace(_STRONG, "").replace(END, "")


def usage_of(context: Any) -> str:
    """How the command is typed, on one line."""
    return " ".join(uncoloured(context.get_usage()).split()).removeprefix("Usage: ")


def _value(parameter: Any) -> str | None:
    """Of an argument its name, of an option what kind of value it takes."""
    if parameter.param_type_name == "argument":
        return f"{parameter.name.upper()}{'...' if parameter.nargs != 1 else ''}"
    return _VALUES.get(parameter.type.name.strip("<>"))


def _sentence(text: str) -> str:
    """The first one, whole."""
    first = " ".join(text.split("\n\n")[0].split())
    return first.partition(". ")[0].rstrip(".") + "." if first else ""


def _context_of(usual: Any) -> Any:
    """Contexts of this class write help texts by the class below."""

    class Formatter(usual.formatter_class):  # type: ignore[misc]
        def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
            super().write_usage(prog, re.sub(_NEEDED, r"\1", args), prefix)

        def getvalue(self) -> str:
            from cli.drawing.screens import screen_of

            screen, text = screen_of(sys.stdout), str(super().getvalue())
            if screen is None or not screen.colours:
                return text
            return re.sub(_HEADING, lambda found: f"{_STRONG}{found[0]}{END}", text)

    return type("HelpContext", (usual,), {"formatter_class": Formatter})
