"""Templates and their filters. Text that agents or people wrote is escaped, never markup (ruling M6)."""

import hashlib
import time
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from activities.redaction.redact import redact_text
from workflows.contract.faults import first
from workflows.policy.cut_short import task_words
from workflows.policy.prices import dollars
from workflows.text.invisible import visible
from workflows.text.sizes import format_size

HERE = Path(__file__).parent
STATIC = HERE / "static"

UNKNOWN_SECONDS = 3650 * 86_400
"""No task is this old: its time was not recorded."""
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def text_of(value: object) -> object:
    """Make invisible characters of a value visible. Applied to every value a template writes."""
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    return visible(value)


@cache
def environment() -> Environment:
    """Return the template environment of all pages, created once."""
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=text_of,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "ago": ago,
        "age": age,
        "moment": clock_time,
        "until": until,
        "span": span,
        "count": count,
        "short_count": short_count,
        "money": money,
        "one_line": one_line,
        "precise_span": precise_span,
    }
    made.filters["without_secrets"] = redact_text
    made.filters["first_faults"] = first
    made.filters["size"] = format_size
    made.globals |= {"asset": asset, "task_words": task_words}
    made.globals["mark"] = Markup((STATIC / "icon.svg").read_text())  # noqa: S704
    return made


def render_template(template: str, values: Mapping[str, object]) -> str:
    """Render a template: for one page the content of `main`; `base.html` is the frame around it."""
    return environment().get_template(template).render(values)


@cache
def asset(name: str) -> str:
    """Return the address of a static file. It contains a digest of the content, so browsers may cache it for ever."""
    digest = hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:12]
    return f"/ui/static/{digest}/{name}"


def ago(at: float | None) -> Markup:
    """Format a past time relative to now, the exact one on hover. The page's script keeps it current."""

    def words(seconds: float) -> str:
        whole = seconds if seconds < 60 else seconds // 60 * 60
        return f"{span(whole)} ago" if seconds >= 1 else "now"

    return _moment(at, words)


def age(at: float | None) -> Markup:
    """Format the time since then in its largest unit, for a line of a list."""
    return _moment(at, lambda seconds: span(seconds, 1) if seconds >= 1 else "now", Markup(" data-age"))


def clock_time(at: float) -> Markup:
    """Format a time of day on this machine, with the date unless that is today; the exact one on hover."""
    if not abs(time.time() - at) < UNKNOWN_SECONDS:
        return Markup("at an unknown time")
    exact = datetime.fromtimestamp(at).astimezone()
    words = exact.strftime("%H:%M:%S" if exact.date() == datetime.now(exact.tzinfo).date() else "%d %b %H:%M:%S")
    return Markup('<time title="{}">{}</time>').format(exact.strftime("%Y-%m-%d %H:%M:%S %Z"), words)


def until(at: float | None) -> Markup:
    """Format a future time relative to now, such as "in 5m"."""
    return _moment(at, lambda seconds: f"in {span(-seconds)}" if seconds < 0 else f"{span(seconds)} ago")


def _moment(at: float | None, words: Any, more: Markup = Markup("")) -> Markup:  # noqa: B008
    if at is None:
        return Markup("-")
    if not abs(time.time() - at) < UNKNOWN_SECONDS:  # no clock has shown that: it was written into the store by hand
        return Markup("at an unknown time")
    exact = datetime.fromtimestamp(at).astimezone()
    return Markup('<time{} datetime="{}" title="{}">{}</time>').format(
        more, exact.isoformat(timespec="seconds"), exact.strftime("%Y-%m-%d %H:%M:%S %Z"), words(time.time() - at)
    )


def span(seconds: float, most: int = 2) -> str:
    """Format a duration in its largest units."""
    if seconds > UNKNOWN_SECONDS:
        return "unknown"
    left, parts = int(max(0, seconds)), list[str]()
    for size, unit in _UNITS:
        if left >= size and len(parts) < most:
            parts.append(f"{left // size} {unit}")
            left %= size
        elif parts:
            break
    return " ".join(parts) or "0 s"


def precise_span(seconds: float) -> str:
    """Format a duration, a short one to the tenth of a second."""
    return f"{seconds:.1f} s" if seconds < 10 else span(seconds)


def count(value: float) -> str:
    """Format a whole number with separated thousands."""
    return f"{value:,.0f}".replace(",", "\u202f")


def short_count(value: float) -> str:
    """Format a large number in thousands or millions, such as "41k" and "5.9M"."""
    if value < 1000:
        return f"{value:.0f}"
    return f"{value / 1000:.0f}k" if value < 999_500 else f"{value / 1e6:.1f}M"


def money(value: float, *, assumed: bool = False) -> str:
    """Format dollars, as on every other surface."""
    return dollars(value, assumed=assumed)


def one_line(text: str, width: int = 120) -> str:
    """Join the text's lines and truncate them to the width."""
    line = " ".join(text.split())
    return line if len(line) <= width else f"{line[: width - 1]}\u2026"
