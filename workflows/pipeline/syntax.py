"""Parsing of a definition file, in one of two languages, to plain values (ruling K1).

Both parsers are libraries; this module refuses what they silently accept: duplicate names, aliases, deep nesting.
"""

import re
import tomllib
from collections import Counter
from enum import StrEnum
from typing import Any

import yaml
from pydantic import JsonValue

from workflows.contract.locate import Members
from workflows.contract.unstorable import MAX_DEPTH

_BOOLEAN = "tag:yaml.org,2002:bool"


class Format(StrEnum):
    """The language of a definition file."""

    YAML = "yaml"
    TOML = "toml"


class _Loader(yaml.SafeLoader):
    """A safe YAML loader that records duplicate members and refuses aliases, a few bytes of which can expand to a
    billion values.
    """

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event: yaml.Event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent):
            raise yaml.MarkedYAMLError(problem="aliases are not allowed", problem_mark=event.start_mark)  # type: ignore[arg-type]
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise yaml.MarkedYAMLError(problem="it is nested too deeply", problem_mark=event.start_mark)  # type: ignore[arg-type]
        node: yaml.Node | None = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_members(self, node: yaml.MappingNode) -> Members:
        pairs = [
            (str(self.construct_object(key, deep=True)), self.construct_object(value, deep=True))
            for key, value in node.value
        ]
        members = Members(pairs)
        members.duplicates = tuple(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        return members


_Loader.add_constructor("tag:yaml.org,2002:map", _Loader.construct_members)
# `no`, `on` and `off` are words, as in YAML 1.2: a pipeline may have such a name, and a variable such a value.
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in known if tag != _BOOLEAN]
    for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(_BOOLEAN, re.compile("^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF"))
# Dates stay text: a definition has none.
_Loader.add_constructor("tag:yaml.org,2002:timestamp", yaml.SafeLoader.construct_yaml_str)  # type: ignore[type-var]


def parse(text: str, format_: Format) -> JsonValue:
    """Return the values of a text; the message of a ValueError completes "the file cannot be used"."""
    try:
        match format_:
            case Format.YAML:
                return yaml.load(text, _Loader)  # type: ignore[no-any-return]  # noqa: S506
            case Format.TOML:
                return tomllib.loads(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        raise ValueError(f"this is not valid YAML: {error.problem or error}{place}") from None
    except (yaml.YAMLError, tomllib.TOMLDecodeError, ValueError, RecursionError) as error:
        why = "a number has too many digits" if "int_max_str_digits" in str(error) else " ".join(str(error).split())
        raise ValueError(f"this is not valid {format_.upper()}: {why[:300]}") from None
