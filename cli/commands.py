"""The catalogue of commands, for `service help --json`, man pages and pages of documentation."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.invocation import exit_codes
from cli.invocation.aliases import ALIASES
from cli.invocation.examples import EXAMPLES
from cli.invocation.parameters import ValueKind, kinds
from cli.invocation.permitted import SERVED, effect
from cli.main import NOUNS, PANELS, command_of, leaves, root

_TYPES = {str: "text", int: "integer", float: "number", bool: "flag", Path: "path"}


@dataclass(frozen=True)
class Parameter:
    """An option, or an argument by its placeholder."""

    name: str
    also: tuple[str, ...]
    """Other spellings of the option; for a flag, also the one that switches it off."""
    value: str
    """The placeholder of its value; "" for a flag."""
    type: str
    required: bool
    repeated: bool
    default: str | int | float | bool | None
    least: float | None
    most: float | None
    help: str


@dataclass(frozen=True)
class CommandEntry:
    """A command with its usage, its effect, and whether agents may call it."""

    command: str
    group: str
    alias: str | None
    help: str
    effect: str
    """Its greatest possible effect: `reads`, `writes` or `destroys`."""
    for_agents: bool
    """True if agents may call it too."""
    arguments: tuple[Parameter, ...]
    options: tuple[Parameter, ...]
    exit_codes: dict[int, str]
    example: str


def every() -> Iterator[CommandEntry]:
    """Yield every command that people type, in the order of the help."""
    groups = {noun: group for group, nouns in PANELS.items() for noun in nouns}
    for noun in NOUNS:
        for path, command in leaves(command_of(noun), noun):
            if not command.hidden:
                yield _describe(path, command, groups[noun])


def options_of_all() -> tuple[Parameter, ...]:
    """Return the options of `service` itself."""
    return tuple(_parameter(each, ValueKind(bool)) for each in root().params)


def _describe(path: str, command: Any, group: str) -> CommandEntry:
    known = kinds(command.callback)
    shown = [(each.param_type_name, _parameter(each, known[each.name])) for each in command.params]
    options = tuple(parameter for kind, parameter in shown if kind == "option")
    return CommandEntry(
        command=path,
        group=group,
        alias=next((alias for alias, meant in ALIASES.items() if meant == path), None),
        help=" ".join((command.help or "").split()),
        effect=effect(path),
        for_agents=path in SERVED,
        arguments=tuple(parameter for kind, parameter in shown if kind == "argument"),
        options=options,
        exit_codes=exit_codes.meanings(path, waits=any(option.name == "--wait" for option in options)),
        example=EXAMPLES.get(path, ""),
    )


def _parameter(parameter: Any, kind: ValueKind) -> Parameter:
    is_option = parameter.param_type_name == "option"
    default = None if callable(parameter.default) else parameter.default
    first, *also = parameter.opts if is_option else [parameter.metavar]
    return Parameter(
        name=first,
        also=(*also, *(parameter.secondary_opts if is_option else ())),
        value="" if kind.type is bool else parameter.metavar,
        type=_TYPES.get(kind.type, "text"),
        required=parameter.required,
        repeated=parameter.nargs == -1 or getattr(parameter, "multiple", False),
        default=str(default) if isinstance(default, Path) else default,
        least=kind.least,
        most=kind.most,
        help=" ".join((parameter.help or "").split()),
    )
