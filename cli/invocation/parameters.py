"""Types of options and arguments, read from the signatures of the commands' functions, because Typer's own classes
differ by release.
"""

import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from typer.models import ParameterInfo


@dataclass(frozen=True)
class ValueKind:
    """The type of a parameter's value, and the range of a number."""

    type: type
    least: float | None = None
    most: float | None = None

    def refusal(self, typed: str) -> str:
        """Say why this is not a number in the range."""
        try:
            number = self.type(typed)
        except ValueError:
            return f"{typed!r} is not a {'whole ' if self.type is int else ''}number"
        if self.least is not None and self.most is not None:
            return f"{number} is not in the range {self.least} to {self.most}"
        return f"{number} is not {f'{self.most} or less' if self.least is None else f'{self.least} or more'}"


def kinds(function: Callable[..., Any] | None) -> dict[str, ValueKind]:
    """Return the kind of each parameter of a command's function."""
    hints = get_type_hints(function, include_extras=True) if function else {}
    return {name: _kind(*get_args(hint)) for name, hint in hints.items() if get_origin(hint) is Annotated}


def _kind(hint: Any, *extras: Any) -> ValueKind:
    info = next((extra for extra in extras if isinstance(extra, ParameterInfo)), ParameterInfo())
    return ValueKind(_value_type(hint), info.min, info.max)


def _value_type(hint: Any) -> type:
    """Return the element type of an annotation without list and None: `Path` for `list[Path] | None`."""
    if isinstance(hint, types.UnionType):
        return _value_type(next(arm for arm in get_args(hint) if arm is not types.NoneType))
    if get_origin(hint) is list:
        return _value_type(get_args(hint)[0])
    return hint if isinstance(hint, type) else str
