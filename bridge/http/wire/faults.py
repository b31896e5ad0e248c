"""Validation faults in words: which field, what is wrong, and what is allowed."""

from collections.abc import Mapping, Sequence
from typing import Any

from workflows.contract.faults import SHOWN, did_you_mean, first
from workflows.contract.size_limits import short_line

NAME = 100
"""Longest name, in characters, that is quoted from a request."""


def sentences(faults: Sequence[Mapping[str, Any]]) -> str:
    """Return the faults of a request in one line, limited to as many as a person reads."""
    return "; ".join(first([sentence(each) for each in faults[:SHOWN]], len(faults)))


def sentence(fault: Mapping[str, Any]) -> str:
    """Describe one fault of a request."""
    where, *path = (str(part) for part in fault["loc"])
    field = short_line(".".join(path), NAME) or f"the {where}"
    match fault["type"]:
        case "missing" if not path:
            return "a JSON object is required as the body"
        case "missing":
            return f"{field} is required"
        case "extra_forbidden":
            return f"{field} is not a field of this request"
        case "value_error":
            return f"{field} {fault['ctx']['error']}"
        case _:
            text = str(fault["msg"]).removeprefix("Input should be ").removeprefix("Value should have ")
            return f"{field} must be {text}"


def unknown(name: str, known: Sequence[str]) -> str:
    """Describe an unknown query parameter, with the nearest known name."""
    name = short_line(name, NAME)
    hint = did_you_mean(name, known) or f"; known here: {', '.join(known) or 'none'}"
    return f"{name!r} is not a query parameter{hint}"
