"""Templates, and how values read in them. Whatever agents or people wrote is text, never markup (ruling M6)."""

import hashlib
import time
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from activities.redaction.redacted import redacted
from workflows.contract.faults import first
from workflows.contract.visible import visible
from workflows.policy.prices import dollars

HERE = Path(__file__).parent
STATIC = HERE / "static"

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def text_of(value: object) -> object:
    """Every value a template writes comes through here: what one cannot see is shown as what it is."""
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    return visible(value)


@cache
def environment() -> Environment:
    """The templates of all pages."""
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=text_of,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"ago": ago, "until": until, "span": span, "count": count, "money": money, "one_line": one_line}
    made.filters["without_secrets"] = redacted
    made.filters["first_faults"] = first
    made.globals["asset"] = asset
    return made


def rendered(template: str, values: Mapping[str, object]) -> str:
    """A template of one page is what stands inside `main`; `base.html` is all around it."""
    return environment().get_template(template).render(values)


@cache
def asset(name: str) -> str:
    """Where a file of ours is; another content has another address, so browsers may keep it for ever."""
    digest = hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:12]
    return f"/ui/static/{digest}/{name}"


def ago(at: float | None) -> Markup:
    """A moment that is over, told from now; the exact one on hover. The page's script keeps it true."""
    return _moment(at, lambda seconds: f"{span(seconds)} ago" if seconds >= 1 else "now")


def until(at: float | None) -> Markup:
    """A moment that is to come."""
    return _moment(at, lambda seconds: f"in {span(-seconds)}" if seconds < 0 else f"{span(seconds)} ago")


def _moment(at: float | None, words: Any) -> Markup:
    if at is None:
        return Markup("-")
    exact = datetime.fromtimestamp(at).astimezone()
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        exact.isoformat(timespec="seconds"), exact.strftime("%Y-%m-%d %H:%M:%S %Z"), words(time.time() - at)
    )


def span(seconds: float) -> str:
    """A length of time in its two largest units."""
    left, said = int(max(0, seconds)), list[str]()
    for size, unit in _UNITS:
        if left >= size and len(said) < 2:
            said.append(f"{left // size} {unit}")
            left %= size
        elif said:
            break
    return " ".join(said) or "0 s"


def count(value: float) -> str:
    """A whole number with its thousands apart."""
    return f"{value:,.0f}".replace(",", "\u202f")


def money(value: float, *, assumed: bool = False) -> str:
    """Dollars, as everywhere else."""
    return dollars(value, assumed=assumed)


def one_line(text: str, width: int = 120) -> str:
    """As much of a text as fits."""
    line = " ".join(text.split())
    return line if len(line) <= width else f"{line[: width - 1]}\u2026"
