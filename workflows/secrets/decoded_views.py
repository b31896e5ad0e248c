"""Decoded views of a text: invisible characters removed, escapes decoded, broken lines joined, base64 decoded."""

import base64
import binascii
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import pairwise

from workflows.secrets.spans import Finder, Span, View, view

_UNSEEN = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffd\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_WIDE = "\uff01-\uff5e"
_ANY = re.compile(f"[\\\\%&{_UNSEEN}{_WIDE}]")
_ESCAPE = "[\x1b\ufffd\u241b]"
_CODED = re.compile(
    rf"{_ESCAPE}\[[0-?]{{0,64}}[ -/]{{0,8}}[@-~]"  # ANSI: colours, movements
    rf"|{_ESCAPE}\][^\x07\x1b\ufffd\u241b\n]{{0,400}}(?:[\x07\ufffd]|\x1b\\)"  # titles, links
    "|\x1b[@-Z^_]|\x9b[0-?]{0,64}[ -/]{0,8}[@-~]"
    f"|[{_UNSEEN}]+"
    f"|[{_WIDE}]"
    r"|\\(?:[\"'\\/bfnrt_-]|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|e(?=\[)"  # JSON and its like
    r"|[ux]\{[0-9a-fA-F]{1,6}\}|U[0-9a-fA-F]{8}|0?[0-3][0-7]{2})"  # languages, shells
    r"|%(?:[0-9a-fA-F]{2}|u[0-9a-fA-F]{4})"
    r"|&(?:quot|amp|lt|gt|apos|nbsp|colon|equals|#[0-9]{1,7}|#x[0-9a-fA-F]{1,6});"
)
_LETTERS = {"n": "\n", "r": "\n", "t": "\t", "b": "", "f": ""}
_ENTITIES = {"quot": '"', "amp": "&", "lt": "<", "gt": ">", "apos": "'", "nbsp": " ", "colon": ":", "equals": "="}

_BREAK = re.compile(
    r"(?<=[A-Za-z0-9_/+=.-])(?:[ \t]*+\\?\r?\n[ \t>|#*]*+"
    r"|[\"'][ \t]*+(?:[+.&][ \t]*+)?(?:(?<=[+.&\t ])|\\?\r?\n[ \t]*+)[\"'])(?=[A-Za-z0-9_/+=.-])"  # pieces of a literal
)

_NEXT = re.compile(r"[A-Za-z0-9_/+=.-]{4,200}")

_RUN = re.compile(r"[A-Za-z0-9+/_-]{20,}+={0,2}")
_LINES = re.compile(
    r"[A-Za-z0-9+/_-](?<![A-Za-z0-9+/_-].)[A-Za-z0-9+/_-]{39,}+={0,2}\r?\n[ \t]*+"
    r"(?:[A-Za-z0-9+/_-]{40,}+={0,2}\r?\n[ \t]*+)*+[A-Za-z0-9+/_-]*+={0,2}"
)
_BASE32 = re.compile(r"[A-Z2-7](?<![A-Za-z0-9].)[A-Z2-7]{23,}+={0,6}(?![A-Za-z0-9])")
_SPELLED = re.compile(
    r"[0-9a-fA-F](?<![0-9a-zA-Z].)(?:(?<=0)x[0-9a-fA-F]{2}|[0-9a-fA-F])(?:, ?|[ :])"
    r"(?:(?:0x)?[0-9a-fA-F]{2}(?:, ?|[ :])){10,}+(?:(?:0x)?[0-9a-fA-F]{2})?"
)
"""Bytes in hex with separators between them."""
_NUMBERS = re.compile(r"[0-9](?<![0-9.].)[0-9]{1,2}, ?(?:[0-9]{2,3}, ?){10,}+(?:[0-9]{2,3})?")
_HEX = re.compile(r"[0-9a-fA-F](?<![0-9a-fA-F].)[0-9a-fA-F](?:[0-9a-fA-F]{2}){19,}+(?![0-9a-fA-F])")
_LOOKED_AT = 32
"""How many characters decide whether a run is base64 of a text."""


def without_escapes(text: str) -> View | None:
    """Decode one layer of escapes; return None if the text has no escapes."""
    return view(text, _CODED, _decode) if _ANY.search(text) else None


def without_quoting(text: str) -> View | None:
    """Decode quoted-printable; return None if the text does not look like it."""
    return view(text, _QUOTED, _unquote) if "=" in text and _IS_QUOTED.search(text) else None


_QUOTED = re.compile(r"=(?:\r?\n|[2-7][0-9A-F])")
_IS_QUOTED = re.compile(r"=3D|(?:=[2-7][0-9A-F]){4}|(?<=[\w-])=\r?\n(?=[\w-])")


def _unquote(match: re.Match[str]) -> str:
    return "" if match[0].endswith("\n") else chr(int(match[0][1:], 16))


def _decode(match: re.Match[str]) -> str:
    code = match[0]
    match code[0]:
        case "\\":
            return _unescape(code[1:])
        case "%":
            number = int(code.lstrip("%u"), 16)
            return chr(number) if 32 <= number < 127 or number in (9, 10, 13) else code
        case "&":
            return _entity(code[1:-1])
        case wide if "\uff01" <= wide <= "\uff5e":
            return chr(ord(wide) - 0xFEE0)
        case _:
            return ""


def _unescape(code: str) -> str:
    """Decode the part of an escape that follows the backslash."""
    if code[0] in "uUx":
        number = int(code[1:].strip("{}"), 16)
    elif code[0].isdigit():
        number = int(code, 8)
    else:
        return "\x1b" if code == "e" else _LETTERS.get(code, code)
    return chr(number) if number < 0x110000 else " "


def _entity(name: str) -> str:
    if not name.startswith("#"):
        return _ENTITIES[name]
    number = int(f"0{name[1:]}", base=0) if name[1] == "x" else int(name[1:])
    return chr(number) if 0 < number < 0x110000 and not 0xD800 <= number < 0xE000 else " "


def across_breaks(text: str, find: Callable[[str, Collection[int]], Iterable[Span]]) -> Iterator[Span]:
    """Yield spans that are found only if broken lines are joined, as far as the text after a break looks like part of
    the span.

    `find` also gets the positions in the joined text where lines began, since a word may begin there.
    """
    if not ("\n" in text or "+" in text) or (whole := view(text, _BREAK, _join)) is None:
        return
    for start, end in find(whole.text, frozenset(whole.starts)):
        breaks = whole.starts[bisect_right(whole.starts, start) : bisect_left(whole.starts, end)]
        if not breaks:
            continue
        first = whole.text[start : breaks[0]]
        alone = (0, len(first)) in find(first, ())  # possibly a complete token
        goes_on = _surely_random if alone else _goes_on
        until = _until(whole.text, [*breaks, end], goes_on)
        if until > breaks[0] and (0, until - start) in find(whole.text[start:until], ()):
            yield whole.back((start, until))


def _until(text: str, breaks: list[int], goes_on: Callable[[str], bool]) -> int:
    """Return the first break after which other text begins, or else the last break."""
    ends = (at for at, after in pairwise(breaks) if not goes_on(text[at:after]))
    return next(ends, breaks[-1])


def _join(match: re.Match[str]) -> str:
    """Remove a line break if the next line may continue the text before it."""
    after = _NEXT.match(match.string, match.end())
    return "" if after and _goes_on(after[0]) else match[0]


def _goes_on(rest: str) -> bool:
    """Return whether the text may continue a token, rather than begin a line with an ordinary word."""
    return any(map(str.isdigit, rest)) or (len(rest) >= 8 and rest[1:] != rest[1:].lower()) or len(rest) >= 24


def _surely_random(rest: str) -> bool:
    """Return whether the text certainly looks random. It follows a complete token, so it may also be other text."""
    some_digits = sum(map(str.isdigit, rest)) > len(rest) // 12
    return len(rest) >= 6 and some_digits and rest != rest.lower() and rest != rest.upper()


def decoded_runs(text: str, find: Finder) -> Iterator[Span]:
    """Yield whole runs of base64, base32, hex or numbers whose decoded text contains secrets."""
    done = 0
    for match in _LINES.finditer(text) if "\n" in text else ():
        if (decoded := _base64(match[0])) and any(True for _ in find(decoded[1])):
            done = match.end()
            yield match.start() + decoded[0], done
    for match in _RUN.finditer(text):
        if (decoded := _base64(match[0])) and any(True for _ in find(decoded[1])):
            yield match.start() + decoded[0], match.end()
    for pattern, decode in _BYTES:
        for match in pattern.finditer(text):
            raw = decode(match[0])
            if raw and _is_text(raw[:20]) and any(True for _ in find(raw.decode("utf-8", "replace"))):
                yield match.span()


def _from_base32(run: str) -> bytes:
    plain = run.rstrip("=")
    try:
        return base64.b32decode(plain + "=" * (-len(plain) % 8))
    except (binascii.Error, ValueError):
        return b""


def _from_spelled_hex(run: str) -> bytes:
    return bytes.fromhex(run.replace("0x", "").replace(",", " ").replace(":", " "))


def _from_numbers(run: str) -> bytes:
    numbers = [int(number) for number in run.split(",") if number.strip()]
    return bytes(numbers) if max(numbers) < 128 else b""


_BYTES: tuple[tuple[re.Pattern[str], Callable[[str], bytes]], ...] = (
    (_HEX, bytes.fromhex),
    (_BASE32, _from_base32),
    (_SPELLED, _from_spelled_hex),
    (_NUMBERS, _from_numbers),
)


_BLANK = re.compile(r"[\s=]")


def _base64(run: str) -> tuple[int, str] | None:
    """Decode base64. Return the text, and the number of leading characters that are not part of it."""
    plain = _BLANK.sub("", run).replace("-", "+").replace("_", "/")
    for skip in range(4):
        head = _base64_bytes(plain[skip : skip + _LOOKED_AT])
        if head and _is_text(head):
            return skip, _base64_bytes(plain[skip:]).decode("utf-8", "replace")
    return None


def _base64_bytes(plain: str) -> bytes:
    plain = plain[: len(plain) - 1] if len(plain) % 4 == 1 else plain
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4))
    except (binascii.Error, ValueError):
        return b""


def _is_text(head: bytes) -> bool:
    """Return whether bytes are printable text, except for a character that the end cuts in two."""
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        if error.start < len(head) - 3:
            return False
        text = head[: error.start].decode()
    return len(text) >= 8 and all(character.isprintable() or character in "\t\n\r\x1b" for character in text)
