"""Locating the result in an agent's output, in one pass and in linear time (rulings A1, A2).

No library is used: JSON parsers start at a given place, and stop at the first fault.

A JSON object can begin at any `{` in prose, so a scan cannot know whether a quote opens a string or closes one. But
only two readings are possible: at any place, one of them is outside strings and the other inside. Both are followed at
once, as two lanes that swap at every quote. A backslash ends the lane outside strings, where JSON has none; a line
break ends the lane inside. Every valid object lies in one lane, so its braces match whatever surrounds it.
"""

import json
import re
from collections import Counter
from dataclasses import dataclass, field

from pydantic import JsonValue

KEY = "service_result"
MOST_CANDIDATES = 1_000
"""Only the last candidates are examined, since an agent ends with its result."""

_STRING = r'"[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+"'
_OPENS = rf"\{{(?=\s*+{_STRING}\s*+:)"
_INERT = rf"\{{(?:\s*+\}}|(?!\s*+{_STRING}\s*+:))"
_PLAIN = r'[^"\\{}\n]'
_KEY = rf'"{KEY}"\s*+:'
_EVENT = re.compile(
    # Text that changes neither lane: plain text, empty objects, braces that open no object, and quotes around these.
    rf'(?:{_PLAIN}++|{_INERT}|(?!{_KEY})"(?:{_PLAIN}++|{_INERT})*+(?!{_KEY})")*+'
    rf'(?:(\{{)|(\}}++)|({_KEY})|(")|((?:\\(?!{_OPENS})[^\n]{_PLAIN}*+)++|\\)|(\n[^"\\{{}}]*+)|\Z)'
)
_OPEN, _CLOSE, _KEY_SEEN, _QUOTE, _ESCAPE, _LINE_BREAK = range(1, 7)
_GOES_ON = re.compile(r"\s*+[,\]}]")
_PROSE = re.compile(rf'\{{\s*+{_KEY}\s*+(?!\{{\s*+(?:["}}]|\Z)|\Z)')
_MARKS = "\"'\u201c\u201d\u201e\u2018\u2019"
_NEARLY = re.compile(rf"\{{\s*+[{_MARKS}]?{KEY}[{_MARKS}]?\s*+:\s*+(?:\{{\s*+[{_MARKS}\w]|[/#])")
_STEP = re.compile(rf"({_STRING})(\s*+:)?|([{{\[])|([}}\]])|(,)")
_CUT_SCALAR = re.compile(r"-|t|tr|tru|f|fa|fal|fals|n|nu|nul|-?I[nfity]*|N|Na|\\?u[0-9a-fA-F]{0,3}")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A complete JSON object that has the key at its own top level."""

    start: int
    value: dict[str, JsonValue]
    end: int


@dataclass(frozen=True, slots=True)
class Broken:
    """A candidate that is not a complete JSON object; `message` gives the reason."""

    start: int
    message: str
    end: int


class Members(dict[str, JsonValue]):
    """A JSON object with the names of its duplicate members."""

    duplicates: tuple[str, ...] = ()


@dataclass(slots=True)
class _Lane:
    """One of the two readings: its open objects, the open objects that have the key, and the complete objects."""

    opens: list[int] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)
    complete: list[tuple[int, bool]] = field(default_factory=list)
    """The start of each complete object, and whether more JSON follows it."""
    dead: list[int] = field(default_factory=list)

    def mark(self) -> None:
        if self.opens and (not self.marks or self.marks[-1] != self.opens[-1]):
            self.marks.append(self.opens[-1])

    def close(self, text: str, end: int) -> None:
        start = self.opens.pop()
        if not self.marks or self.marks[-1] != start:
            return
        self.marks.pop()
        goes_on = _GOES_ON.match(text, end) is not None
        # Objects inside a candidate with more JSON behind them are that candidate's data.
        while self.complete and self.complete[-1][0] > start and self.complete[-1][1]:
            self.complete.pop()
        # An object without JSON behind it shows that the braces around it are no JSON.
        is_json = not self.complete or self.complete[-1][0] < start
        if is_json and not (self.marks and goes_on):
            self.complete.append((start, goes_on))

    def die(self) -> None:
        if self.marks:
            self.dead.append(self.marks[0])
            self.marks.clear()
        self.opens.clear()


def locate(text: str) -> tuple[Candidate | Broken, ...]:
    """Return every candidate of an output in order; objects inside a candidate are its data (ruling A1)."""
    candidates: list[Candidate | Broken] = []
    for start in _starts(text)[-MOST_CANDIDATES:] if f'"{KEY}"' in text else ():
        try:
            value, end = _DECODER.raw_decode(text, start)
        except json.JSONDecodeError as error:
            if not _PROSE.match(text, start):
                candidates.append(Broken(start, _why(text, start, error), error.pos))
        except RecursionError:
            candidates.append(Broken(start, "the result is nested too deeply to be read", start))
        else:
            candidates.append(Candidate(start, _innermost(value), end))
    return tuple(candidates)


def slip(text: str, start: int = 0) -> str:
    """Explain why the last object with the key is invalid JSON, in an output without a candidate; "" if there is no
    such object.
    """
    places = [match.start() for match in _NEARLY.finditer(text, start)]
    if places:
        try:
            _DECODER.raw_decode(text, places[-1])
        except json.JSONDecodeError as error:
            return _why(text, places[-1], error)
        except RecursionError:
            pass
    return ""


def _starts(text: str) -> list[int]:
    outside, inside = lanes = _Lane(), _Lane()
    for event in _EVENT.finditer(text):
        kind = event.lastindex
        if kind == _OPEN:
            outside.opens.append(event.end() - 1)
        elif kind == _CLOSE:
            first, last = event.span(_CLOSE)
            for place in range(first, min(last, first + len(outside.opens))):
                outside.close(text, place + 1)
        elif kind == _KEY_SEEN:
            outside.mark()
            inside.die()
        elif kind == _QUOTE:
            outside, inside = inside, outside
        elif kind == _ESCAPE:
            outside.die()
        elif kind == _LINE_BREAK:
            inside.die()
    for lane in lanes:
        lane.die()
    return sorted({start for lane in lanes for start in (*dict(lane.complete), *lane.dead)})


def _innermost(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Unwrap nested objects with the key: the innermost one is the candidate."""
    while isinstance(inner := value[KEY], dict) and KEY in inner:
        value = inner
    return value


def _members(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    value = dict(pairs)
    if len(value) == len(pairs):
        return value
    members = Members(value)
    members.duplicates = tuple(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
    return members


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= 300 else float("inf")


_DECODER = json.JSONDecoder(object_pairs_hook=_members, parse_int=_integer)


def _why(text: str, start: int, error: json.JSONDecodeError) -> str:
    rest = text[error.pos :].rstrip()
    if not rest or error.msg.startswith("Unterminated string") or _CUT_SCALAR.fullmatch(rest):
        part = text[start:]  # the place where it was truncated (ruling A2)
        where = f", inside {reached}" if (reached := _path_at_end(part)) else ""
        size = len(part.encode("utf-8", "surrogatepass"))
        return f"the result is truncated: the output ends after {size} bytes of it{where}; send the whole object"
    line = text.count("\n", start, error.pos) + 1
    where = f"at line {line} of the result, near {near(text, error.pos, start)}"
    return f"the result is not valid JSON: {_slip(text, error)} {where}"


def near(text: str, at: int, start: int = 0) -> str:
    """Quote the text around a place of an output, from `start` on."""
    return json.dumps(text[max(start, at - 20) : at + 20])


_QUOTES = frozenset("\u201c\u201d\u201e\u201f\u2018\u2019\u00ab\u00bb")


def _slip(text: str, error: json.JSONDecodeError) -> str:
    """Name the writer's mistake at a fault if it is a common one; otherwise return the parser's words."""
    at, last = text[error.pos : error.pos + 2], text[: error.pos].rstrip()[-1:]
    if _QUOTES & {*at[:1], last}:
        return 'typographic quotes, where JSON has straight ones ("),'
    if at.startswith(("//", "/*", "#")):
        return "a comment, which JSON has none of,"
    if at[:1] == "'":
        return 'single quotes, where JSON has double ones ("),'
    if at[:1] in "}]" and last == ",":
        return f"a comma before {at[:1]}"
    if at.startswith(("..", "\u2026")):
        return "an ellipsis, where all has to be written out,"
    if error.msg.startswith("Expecting ','") and at[:1] in "}]`":
        return f"a bracket that is still open before {at[:1]}"
    if error.msg.startswith("Expecting ','") and at[:1].isalnum() and last == '"':
        return 'a quote inside a string (write \\"), or a comma too few,'
    if error.msg.startswith("Expecting value") and at[:1].isalpha():
        return "a word that JSON has not (it has null, true and false)"
    if error.msg.startswith("Invalid control character"):
        return "a line break or another control character in a string (write \\n or \\t)"
    if error.msg.startswith("Invalid \\escape"):
        return "a backslash that begins no escape (write \\\\)"
    if "property name" in error.msg:
        return "a key without double quotes"
    return error.msg.lower()


def _path_at_end(part: str) -> str:
    """Return the path of the member at which a cut-off JSON text ends, relative to the result object."""
    path: list[str | int] = []
    for step in _STEP.finditer(part):
        string, colon, opening, closing, comma = step.groups()
        if opening:
            path.append(0 if opening == "[" else "")
        elif closing and path:
            path.pop()
        elif comma and path and isinstance(path[-1], int):
            path[-1] += 1
        elif colon and path and isinstance(path[-1], str):
            path[-1] = string[1:-1]
    names = [f"[{name}]" if isinstance(name, int) else f".{name}" for name in path if name != ""]
    reached = "".join(names).removeprefix(f".{KEY}").lstrip(".")
    return reached[:200].encode("ascii", "backslashreplace").decode()
