"""The contract as an agent reads it, generated from the models and the schema (spec: The result object)."""

import json
from collections.abc import Mapping
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

It is read by a program. Every key below is matched exactly; any other key is refused, and so are misspelt values. Leave
out what you do not need. Be truthful and brief, and never write a secret anywhere in it.
"""

_RULES = """Rules:
- ids: 1 to 64 letters, digits, ".", "_", "-", beginning with a letter or digit.
- Jobs without deps run at once and in parallel; a job with deps runs when all of them succeeded. No cycles.
- When all are over you are asked once more, with their outcomes, to bring the work together.
- An ephemeral worker that implements needs autonomy_policy workspace-write or danger-full-access.
- quorum: only with synthesis_rule quorum, from 1 to the number of delegations.
- A review with nothing to flag is approved, never skipped. Delegations of a blocked or failed result are not run.
- Durations are a number and a unit, largest first: d h m s ms. A bare number is refused.
- Set human_questions only when you cannot go on without a person.
"""
_CASCADE = """\
Start on the cheapest plausible tier. When you are asked again, issue what ended blocked or failed (or a quorum that
was not met) once more on a deep model.
"""


@cache
def explain_contract() -> str:
    """What to return and how, in prose and two examples; part of every agent's prompt."""
    definitions = schema()["$defs"]
    parts = [
        _INTRO,
        _fields(f"Inside {KEY}", definitions, ServiceResult),
        _values("decision", Decision),
        _fields("Each entry of delegations (exactly one of agent and ephemeral)", definitions, Delegation),
        _values("failure_policy, when this job fails", FailurePolicy),
        _values("synthesis_rule", SynthesisRule),
        _listed("Tiers to choose a model by (advice; model itself takes a name that its runtime knows)", TIERS)
        + _CASCADE,
        _fields("ephemeral", definitions, Ephemeral),
        _fields("Each entry of human_questions", definitions, HumanQuestion),
        _RULES,
        "Replace everything in angle brackets of these examples; what is left of it is refused.\n",
        _example("The least", MINIMAL),
        _example("With delegations", DELEGATING),
    ]
    return "\n".join(parts)


def _fields(title: str, definitions: dict[str, Any], model: type[Any]) -> str:
    own = definitions[model.__name__]
    required = own["required"]
    lines = [f"{title}:"]
    for name, node in own["properties"].items():
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
