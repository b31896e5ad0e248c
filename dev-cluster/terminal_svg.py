"""What a terminal showed, as a picture whose text is text: one screen, or several that follow one another.

Screens are what `tmux capture-pane -p -e` prints. The pictures need no script, no font and no file from elsewhere.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from unicodedata import east_asian_width
from xml.sax.saxutils import escape

Screen = Sequence[str]
WIDE, HIGH, MARGIN, BAR = 8.4, 19, 16, 34
LAST = 6.0
"""Seconds for which the last screen stands before the first one comes again."""
_SGR = re.compile(r"\x1b\[([\d;:]*)m")
_OTHER = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-ln-z]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()].|[=>\\])|[\x0e\x0f]")
_FORE, _BACK = "#d7dce2", "#12161c"
_COLOURS = ("#6e7681", "#ff7b72", "#57c878", "#e3b341", "#6cb6ff", "#d2a8ff", "#56d4dd", "#d7dce2")
_BRIGHT = ("#8b949e", "#ffa198", "#7ee2a8", "#f2cc60", "#a5d6ff", "#e2c5ff", "#8ae6ed", "#ffffff")
_STEPS = (0, 95, 135, 175, 215, 255)


@dataclass(frozen=True)
class Look:
    """How a character is drawn."""

    colour: str = ""
    bold: bool = False
    dim: bool = False
    underlined: bool = False
    inverse: bool = False

    def changed(self, codes: Sequence[int]) -> "Look":
        """By the numbers of one escape sequence."""
        values, left = dict(vars(self)), list(codes) or [0]
        while left:
            code = left.pop(0)
            match code:
                case 0:
                    values = dict(vars(Look()))
                case 1 | 2 | 4 | 7:
                    values[{1: "bold", 2: "dim", 4: "underlined", 7: "inverse"}[code]] = True
                case 22:
                    values |= {"bold": False, "dim": False}
                case 24 | 27:
                    values[{24: "underlined", 27: "inverse"}[code]] = False
                case 38 | 48:
                    colour = _extended(left)
                    values |= {"colour": colour} if code == 38 else {}
                case 39:
                    values["colour"] = ""
                case _ if 30 <= code <= 37:
                    values["colour"] = _COLOURS[code - 30]
                case _ if 90 <= code <= 97:
                    values["colour"] = _BRIGHT[code - 90]
        return Look(**values)

    @property
    def attributes(self) -> str:
        """What SVG says for it."""
        colour = f' fill="{self.colour}"' if self.colour else ""
        bold = ' font-weight="bold"' if self.bold else ""
        dim = ' opacity=".6"' if self.dim else ""
        return colour + bold + dim + (' text-decoration="underline"' if self.underlined else "")


def _extended(left: list[int]) -> str:
    """A colour by its number among 256, or by red, green and blue."""
    if left.pop(0) == 2:
        red, green, blue = (left.pop(0) for _ in range(3))
        return f"#{red:02x}{green:02x}{blue:02x}"
    number = left.pop(0)
    if number < 16:
        return (*_COLOURS, *_BRIGHT)[number]
    if number >= 232:
        return f"#{8 + 10 * (number - 232):02x}" + f"{8 + 10 * (number - 232):02x}" * 2
    number -= 16
    return "#" + "".join(f"{_STEPS[each]:02x}" for each in (number // 36, number // 6 % 6, number % 6))


def _spans(line: str) -> Iterator[tuple[str, Look]]:
    look = Look()
    for number, part in enumerate(_SGR.split(_OTHER.sub("", line))):
        if number % 2:
            look = look.changed([int(code or 0) for code in re.split("[;:]", part)])
        elif part:
            yield part, look


def _columns(text: str) -> int:
    return sum(2 if east_asian_width(each) in "WF" else 1 for each in text)


def _row(line: str, at: int, attributes: str = "") -> str:
    """A line of the screen; its length is said, so that it is as long in every font."""
    y = BAR + MARGIN + HIGH * at + 14
    x, drawn = float(MARGIN), []
    for text, look in _spans(line):
        long = _columns(text)
        if text.strip():
            size = f'x="{x:g}" textLength="{long * WIDE:g}"'
            drawn.append(f"<tspan {size}{look.attributes}>{escape(text)}</tspan>")
        x = round(x + long * WIDE, 2)
    return f'<text y="{y}"{attributes}>{"".join(drawn)}</text>' if drawn else ""


def complete(screen: Screen) -> list[str]:
    """Each line with all its looks: tmux does not repeat those that go on from the line before."""
    lines, going_on = [], ""
    for line in screen:
        lines.append(going_on + line)
        for code in _SGR.findall(line):
            going_on = "" if code in ("", "0") else f"{going_on}\x1b[{code}m"
    return lines


@dataclass(frozen=True)
class Showing:
    """A line that stands in a row from one screen until another."""

    row: int
    line: str
    first: int
    until: int


def showings(screens: Sequence[Screen]) -> Iterator[Showing]:
    """Each line once for as long as it stays."""
    for row in range(max(map(len, screens))):
        lines = [screen[row] if row < len(screen) else "" for screen in screens]
        at = 0
        for line, same in groupby(lines):
            until = at + len(list(same))
            yield Showing(row, line, at, until)
            at = until


def picture(screens: Sequence[Screen], seconds: Sequence[float], title: str, columns: int) -> str:
    """The whole SVG. `seconds` says for how long each screen stands."""
    screens = [complete(screen) for screen in screens]
    wide = 2 * MARGIN + columns * WIDE
    high = BAR + 2 * MARGIN + HIGH * max(map(len, screens))
    times = [sum(seconds[:at]) for at in range(len(seconds) + 1)]
    rules: dict[str, str] = {}
    rows = []
    for each in showings(screens):
        name = "" if (each.first, each.until) == (0, len(screens)) else f"k{each.first}-{each.until}"
        if name:
            rules[name] = _rule(name, each, times, stays=each.until == len(screens))
        rows.append(_row(each.line, each.row, f' class="a {name}"' if name else ""))
    style = "".join(rules.values()) + (_MOVING.format(seconds=times[-1]) if rules else "")
    return _FRAME.format(
        wide=f"{wide:g}", high=high, right=f"{wide - 1:g}", low=high - 1, middle=f"{wide / 2:g}", title=escape(title),
        back=_BACK, fore=_FORE, style=style, rows="\n".join(filter(None, rows)),
    )  # fmt: skip


def _rule(name: str, each: Showing, times: Sequence[float], *, stays: bool) -> str:
    """When the lines of this name are seen. Where nothing may move, the last screen stands."""
    begin, end = (f"{100 * times[at] / times[-1]:.2f}%" for at in (each.first, each.until))
    hidden = "{visibility:hidden}"
    steps = f"0%{hidden}" if each.first else ""
    steps += begin + "{visibility:visible}" + ("" if stays else end + hidden)
    return (
        f"@keyframes {name}{{{steps}}}.{name}{{animation-name:{name};visibility:{'visible' if stays else 'hidden'}}}\n"
    )


_MOVING = (
    ".a{{animation-duration:{seconds:g}s;animation-iteration-count:infinite;animation-timing-function:step-end}}\n"
    "@media (prefers-reduced-motion:reduce){{.a{{animation:none}}}}\n"
)
_FRAME = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" role="img">
<title>{title}</title>
<style>
text{{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono","DejaVu Sans Mono",monospace;\
white-space:pre;fill:{fore}}}
{style}</style>
<rect x=".5" y=".5" width="{right}" height="{low}" rx="9" fill="{back}" stroke="#3d444d"/>
<circle cx="20" cy="17" r="5.5" fill="#ff5f57"/><circle cx="40" cy="17" r="5.5" fill="#febc2e"/>\
<circle cx="60" cy="17" r="5.5" fill="#28c840"/>
<text x="{middle}" y="22" text-anchor="middle" opacity=".7">{title}</text>
{rows}
</svg>
"""
