"""The contract in prose for agents, generated from the models and the schema (spec: The result object)."""

import json
import re
from collections.abc import Sequence
from enum import StrEnum
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
from workflows.contract.schema import OF_DELEGATIONS, schema
from workflows.contract.wording import MEANINGS

_INTRO = f"""## How to end this job

End your last message with exactly one JSON object of this shape, and write nothing after it:

{{"{KEY}": {{...}}}}

A program reads it: keys and values are matched exactly, and any other is refused. Leave out what you do not need. Be
truthful and brief, and never write a secret in it.
"""
_BY_TOOL = f"""## How to end this job

End it by calling the tool {{tool}} once, and write nothing after it. Its schema says what it takes;
what does not fit is refused, and you call it again. Without this tool, end your last message with that JSON object,
{{{{"{KEY}": {{{{...}}}}}}}}.

Leave out what you do not need. Be truthful and brief, and never write a secret in it.
"""

_SELDOM = ("timeout", "retry", "worktree", "artifacts", "fingerprint", "effort", "phase")
_LEAF = "This job can't delegate: leave `delegations` out, what is in it is never run.\n"

_SHORT = (
    "This job may hand parts to other agents: `delegations`, each an object with `id`, `agent`, `action` and `prompt`."
    " If one is wrong, you are shown the whole form.\n"
)

_RULES = """Rules:
- ids: 1 to 64 letters, digits, ".", "_", "-"; first a letter or digit.
- A review with nothing to flag is approved, never skipped; a skipped result cannot have delegations.
"""
_DELEGATION_RULES = """\
- Delegations of a blocked or failed result are not run.
- Jobs without deps run at once, in parallel. No cycles.
- When all are over you are asked again, with their outcomes, to bring work together.
- An ephemeral worker that implements needs autonomy_policy workspace-write or danger-full-access.
- quorum: at least 1, at most the number of delegations.
- Durations have units, largest first: d h m s ms. A bare number is refused.
"""


class Form(StrEnum):
    """How fully a prompt explains delegating (ruling P4)."""

    WHOLE = "whole"
    """For coordinators: roots, continuations, and agents that plan."""
    SHORT = "short"
    """One sentence, for other registered agents: they may delegate, but seldom do."""
    LEAF = "leaf"
    """No explanation: the job's delegations are never run."""


@cache
def explain_contract(form: Form = Form.WHOLE, width: int = 0, tool: str = "") -> str:
    """Describe the result in prose and examples: the end of every prompt.

    The prompt's section before it, "What to decide", explains the decisions. `width` is the most delegations that one
    result may have in this tree. A program's `tool` that takes the result explains its members itself (ruling S6).
    """
    if tool:
        about = {Form.LEAF: _LEAF, Form.SHORT: _SHORT}.get(form, "")
        rules = _RULES + _DELEGATION_RULES if form is Form.WHOLE else _RULES
        return "\n".join(part for part in (_BY_TOOL.format(tool=tool), about, rules) if part)
    definitions, whole = schema()["$defs"], form is Form.WHOLE
    parts = [
        _INTRO,
        {Form.LEAF: _LEAF, Form.SHORT: _SHORT}.get(form, ""),
        _fields(f"Inside {KEY}", definitions, ServiceResult, () if whole else OF_DELEGATIONS, width),
        *(_delegating(definitions) if whole else ()),
        _fields("Each entry of human_questions", definitions, HumanQuestion),
        _RULES + _DELEGATION_RULES if whole else _RULES,
        _example("Replace all that is in angle brackets; else it is refused. The least", MINIMAL),
        _example("With delegations", DELEGATING) if whole else "",
    ]
    return "\n".join(part for part in parts if part)


def explain_decisions() -> str:
    """List all decisions with their meanings. A prompt lists only those of its job's action."""
    return _values("decision", Decision)


_PLACES: tuple[tuple[re.Pattern[str], type[Any], str], ...] = (
    (re.compile(r"delegations\[\d+\]\.ephemeral"), Ephemeral, "ephemeral"),
    (re.compile(r"delegations\[\d+\]"), Delegation, "Each entry of delegations (exactly one of agent and ephemeral)"),
    (re.compile(r"human_questions\[\d+\]"), HumanQuestion, "Each entry of human_questions"),
    (re.compile(""), ServiceResult, f"Inside {KEY}"),
)
"""The objects of a result, each with the pattern of the paths inside it; inner objects first."""


def explain_shape(paths: Sequence[str], *, leaf: bool = False) -> str:
    """Describe only the objects that have faults, and give the smallest example: the shape for a repair (ruling P4)."""
    definitions = schema()["$defs"]
    wrong = {_object_at(path) for path in paths}
    left_out = OF_DELEGATIONS if leaf else ()
    delegates = not leaf and not wrong.isdisjoint({Delegation, Ephemeral})
    shapes = [
        _fields(title, definitions, model, left_out if model is ServiceResult else ())
        for _, model, title in reversed(_PLACES)
        if model in wrong and not (leaf and model in (Delegation, Ephemeral))
    ]
    parts = [
        _LEAF if leaf else "",
        *shapes,
        explain_decisions() if wrong & {ServiceResult} else "",
        _RULES + _DELEGATION_RULES if delegates else _RULES,
        _example("Replace all that is in angle brackets; else it is refused. The least", MINIMAL),
        _example("With delegations", DELEGATING) if delegates else "",
    ]
    return "\n".join(part for part in parts if part)


def _object_at(path: str) -> type[Any]:
    return next(model for pattern, model, _ in _PLACES if pattern.match(path))


def _delegating(definitions: dict[str, Any]) -> tuple[str, ...]:
    return (
        _fields("Each entry of delegations (exactly one of agent and ephemeral)", definitions, Delegation, _SELDOM)
        + _seldom(definitions),
        _values("failure_policy, when this job fails", FailurePolicy),
        _values("synthesis_rule", SynthesisRule),
        _fields("ephemeral", definitions, Ephemeral),
    )


def _seldom(definitions: dict[str, Any]) -> str:
    """Return one line on the fields of a delegation that are rarely needed."""
    fields = definitions[Delegation.__name__]["properties"]
    listed = (f"{name} ({_type(fields[name], definitions)})" for name in _SELDOM)
    return f"- Seldom needed: {', '.join(listed)}.\n"


def _fields(
    title: str, definitions: dict[str, Any], model: type[Any], left_out: Sequence[str] = (), width: int = 0
) -> str:
    own = definitions[model.__name__]
    required = own["required"]
    lines = [f"{title}:"]
    for name, node in ((name, node) for name, node in own["properties"].items() if name not in left_out):
        need = ", required" if name in required else ""
        if width and name == "delegations":
            node = {**node, "maxItems": width}
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
    return "\n".join([f"{title}:", *(f"- {value}: {meaning}" for value, meaning in MEANINGS[kind].items())]) + "\n"


def _example(title: str, result: dict[str, object]) -> str:
    return f"{title}:\n\n{json.dumps({KEY: result})}\n"
