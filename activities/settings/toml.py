"""Settings as lines of TOML that `tomllib` reads back: tables, quoted strings, lists, durations as text.

No library: settings are texts, numbers, booleans and lists of them, and writing those takes less than a page. The
settings of agents' programs also have inline tables.
"""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import date, time

_BARE = re.compile(r"[A-Za-z0-9_-]+")

Path = tuple[str, ...]
"""The tables of a setting, and its name."""


def dotted_name(path: Path) -> str:
    """Return a setting's name for people: `prices."gpt-5.1".input`."""
    return ".".join(map(_key, path))


def value(given: object) -> str:
    """Format a value: a text, number, boolean or moment, or a list or an inline table of them."""
    match given:
        case bool():
            return "true" if given else "false"
        case int() | float():
            return repr(given)
        case str():
            return _quote(given)
        case list() | tuple():
            return f"[{', '.join(map(value, given))}]"
        case Mapping():
            return f"{{{', '.join(f'{_key(name)} = {value(inner)}' for name, inner in given.items())}}}"
        case date() | time():
            return given.isoformat()
        case _:
            raise TypeError(f"{given!r} is not a value of a setting")


def document(settings: Mapping[str, object]) -> str:
    """Format settings with each table on one line."""
    return "".join(f"{_key(name)} = {value(given)}\n" for name, given in settings.items())


def lines(settings: Mapping[Path, object], notes: Mapping[Path, str]) -> Iterator[str]:
    """Yield the lines of the file, table by table; a note follows its setting as a comment."""
    table: Path | None = None
    for path, given in settings.items():
        if path[:-1] != table:
            if table is not None:
                yield ""
            table = path[:-1]
            yield f"[{dotted_name(table)}]"
        note = f"  # {notes[path]}" if path in notes else ""
        yield f"{_key(path[-1])} = {value(given)}{note}"


def flatten(tables: Mapping[str, object], above: Path = ()) -> dict[Path, object]:
    """Map every setting by its path."""
    flat: dict[Path, object] = {}
    for key, given in tables.items():
        flat |= flatten(given, (*above, key)) if isinstance(given, Mapping) else {(*above, key): given}
    return flat


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _quote(name)


def _quote(text: str) -> str:
    """Quote like JSON, which equals TOML except for DEL, the one control character that JSON does not escape."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
