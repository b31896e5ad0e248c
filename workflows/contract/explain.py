"""The contract in prose for agents, generated from the models and the schema (spec: The result object)."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from workflows.contract.examples import DELEGATING, MINIMAL
from workflows.contract.locate import KEY
from workflows.contract.models import (
    Decision,
    Delegation,
    Ephemeral,
    FailurePolicy,
    HumanQuestion,
    ServiceResult,
    SynthesisRule,
)
from workflows.contract.schema import schema
from workflows.contract.wording import MEANINGS, TIERS

_INTRO = f"""## How to end this job

End your last message with exactly one JSON object of this shape, and write nothing after it:

{{"{KEY}": {{...}}}}

A program reads it: keys and values are matched exactly, and any other is refused. Leave out what you do not need. Be
truthful and brief, and never write a secret in it.
"""

_OF_DELEGATIONS = ("delegations", "artifact_body")
_LEAF = "This job can't delegate: leave `delegations` out, what is in it is never run.\n"

_RULES = """Rules:
- ids: 1 to 64 letters, digits, ".", "_", "-"; first a letter or digit.
- A review with nothing to flag is approved, never skipped.
"""
_DELEGATION_RULES = """\
- Delegations of a blocked or failed result are not run.
- Jobs without deps run at once, in parallel. No cycles.
- When all are over you are asked again, with their outcomes, to bring work together.
- An ephemeral worker that implements needs autonomy_policy workspace-write or danger-full-access.
- quorum: at least 1, at most the number of delegations.
- Durations have units, largest first: d h m s ms. A bare number is refused.
"""
_CASCADE = """\
Start on the cheapest plausible tier. When you are asked again, issue what ended blocked or failed (or a quorum that
was not met) once more on a deep model.
"""


@cache
def explain_contract(*, leaf: bool = False) -> str:
    """Describe the result in prose and examples: the end of every prompt. A leaf's has no delegations (P4)."""
    definitions = schema()["$defs"]
    delegating = () if leaf else _delegating(definitions)
    parts = [
        _INTRO,
        _LEAF if leaf else "",
        _fields(f"Inside {KEY}", definitions, ServiceResult, left_out=_OF_DELEGATIONS if leaf else ()),
        _values("decision", Decision),
        *delegating,
        _fields("Each entry of human_questions", definitions, HumanQuestion),
        _RULES if leaf else _RULES + _DELEGATION_RULES,
        _example("Replace all that is in angle brackets; else it is refused. The least", MINIMAL),
        "" if leaf else _example("With delegations", DELEGATING),
    ]
    return "\n".join(part for part in parts if part)


_PLACES: tuple[tuple[str, type[Any], str], ...] = (
    (r"delegations\[\d+\]\.ephemeral", Ephemeral, "ephemeral"),
    (r"delegations\[\d+\]", Delegation, "Each entry of delegations (exactly one of agent and ephemeral)"),
    (r"human_questions\[\d+\]", HumanQuestion, "Each entry of human_questions"),
    ("", ServiceResult, f"Inside {KEY}"),
)
"""The objects of a result by the paths of their contents, inner ones first."""


def explain_shape(paths: Sequence[str], *, leaf: bool = False) -> str:
    """Describe only the objects with faults, and the least example: the shape for a repair (ruling P4)."""
    definitions = schema()["$defs"]
    wrong = {_object_at(path) for path in paths}
    left_out = _OF_DELEGATIONS if leaf else ()
    delegates = not leaf and not wrong.isdisjoint({Delegation, Ephemeral})
    shapes = [
        _fields(title, definitions, model, left_out if model is ServiceResult else ())
        for _, model, title in reversed(_PLACES)
        if model in wrong and not (leaf and model in (Delegation, Ephemeral))
    ]
    parts = [
        _LEAF if leaf else "",
        *shapes,
        _values("decision", Decision) if wrong & {ServiceResult} else "",
        _RULES + _DELEGATION_RULES if delegates else _RULES,
        _example("Replace all that is in angle brackets; else it is refused. The least", MINIMAL),
        _example("With delegations", DELEGATING) if delegates else "",
    ]
    return "\n".join(part for part in parts if part)


def _object_at(path: str) -> type[Any]:
    return next(model for pattern, model, _ in _PLACES if re.match(pattern, path))


def _delegating(definitions: dict[str, Any]) -> tuple[str, ...]:
    return (
        _fields("Each entry of delegations (exactly one of agent and ephemeral)", definitions, Delegation),
        _values("failure_policy, when this job fails", FailurePolicy),
        _values("synthesis_rule", SynthesisRule),
        _listed("Tiers to choose a model by (model takes a name that its runtime knows)", TIERS) + _CASCADE,
        _fields("ephemeral", definitions, Ephemeral),
    )


def _fields(title: str, definitions: dict[str, Any], model: type[Any], left_out: Sequence[str] = ()) -> str:
    own = definitions[model.__name__]
    required = own["required"]
    lines = [f"{title}:"]
    for name, node in ((name, node) for name, node in own["properties"].items() if name not in left_out):
        need = ", required" if name in required else ""
        lines.append(f"- {name} ({_type(node, definitions)}{need}): {node['description']}")
    return "\n".join(lines) + "\n"


def _type(node: dict[str, Any], definitions: dict[str, Any]) -> str:
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        return "|".join(definitions[name]["enum"]) if "enum" in definitions[name] else "object"
    if "anyOf" in node:
        return " or ".join(_type(option, definitions) for option in node["anyOf"] if option.get("type") != "array")
    if node.get("type") == "array":
        most = f", max {node['maxItems']} of them" if "maxItems" in node else ""
        return f"array of {_type(node['items'], definitions)}{most}"
    most = f" max {node['maxLength']}" if "maxLength" in node else ""
    return str(node.get("type", "any JSON")) + most


def _values(title: str, kind: type[Any]) -> str:
    return _listed(title, MEANINGS[kind])


def _listed(title: str, meanings: Mapping[Any, str]) -> str:
    return "\n".join([f"{title}:", *(f"- {value}: {meaning}" for value, meaning in meanings.items())]) + "\n"


def _example(title: str, result: dict[str, object]) -> str:
    return f"{title}:\n\n{json.dumps({KEY: result})}\n"
