"""The JSON Schema of the result object, generated from the models (spec: The result object).

It contains as many of the rules as JSON Schema can express; `validate` decides. Null, which `validate` accepts as "not
set", is omitted here: writers need only one way to express it.
"""

from typing import Any

from workflows.contract.locate import KEY
from workflows.contract.models import WRITE_POLICIES, Action, Decision, ServiceResult, SynthesisRule
from workflows.contract.size_limits import BOUNDS, COUNTS
from workflows.contract.wording import MEANINGS

Schema = dict[str, Any]

TEXTS: dict[str, dict[str, str]] = {
    "Delegation": {name: name for name in ("agent", "prompt", "timeout", "worktree", "fingerprint", "model", "effort")}
    | {"phase": "phase", "artifacts": "artifact"},
    "Ephemeral": {"model": "model", "effort": "effort", "template": "template", "role": "role"}
    | {"capabilities": "capability"},
    "HumanQuestion": {"prompt": "question", "choices": "choice"},
}
"""The named bound of each text, or of each entry of an array of texts, by object and member (ruling B6)."""

_WRITES: Schema = {
    "properties": {
        "ephemeral": {
            "required": ["autonomy_policy"],
            "properties": {"autonomy_policy": {"enum": sorted(WRITE_POLICIES)}},
        }
    }
}
_RULES: dict[str, list[Schema]] = {
    "Delegation": [
        {"oneOf": [{"required": ["agent"]}, {"required": ["ephemeral"]}]},
        {
            "if": {"properties": {"synthesis_rule": {"const": SynthesisRule.QUORUM}}, "required": ["synthesis_rule"]},
            "then": {"required": ["quorum"]},
            "else": {"properties": {"quorum": False}},
        },
        {"if": {"properties": {"action": {"const": Action.IMPLEMENT}}}, "then": _WRITES},
    ],
    "ServiceResult": [
        {
            "if": {"properties": {"decision": {"const": Decision.SKIPPED}}},
            "then": {"properties": {"delegations": {"maxItems": 0}}},
        },
        {
            "if": {
                "properties": {
                    "delegations": {
                        "contains": {"properties": {"artifacts": {"minItems": 1}}, "required": ["artifacts"]}
                    }
                },
                "required": ["delegations"],
            },
            "then": {"required": ["artifact_body"]},
        },
    ],
}


def schema() -> Schema:
    """Return the schema of the whole object an agent ends with."""
    inner = _tidy(ServiceResult.model_json_schema())
    definitions: Schema = inner.pop("$defs")
    definitions.pop("JsonValue", None)
    definitions["ServiceResult"] = inner
    for kind, meanings in MEANINGS.items():
        values = "; ".join(f"{value}: {meaning}" for value, meaning in meanings.items())
        definitions[kind.__name__]["description"] += f" {values}." if values else ""
    for name, rules in _RULES.items():
        definitions[name]["allOf"] = rules
    _add_bounds(definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "description": "The one object every job ends with.",
        "properties": {KEY: {"$ref": "#/$defs/ServiceResult"}},
        "required": [KEY],
        "additionalProperties": False,
        "$defs": definitions,
    }


def _add_bounds(definitions: Schema) -> None:
    """Add the bounds JSON Schema can express: characters and entries. `validate` checks bytes."""
    for owner, texts in TEXTS.items():
        for name, of in texts.items():
            node = definitions[owner]["properties"][name]
            node.get("items", node)["maxLength"] = BOUNDS[of].characters
    for definition in definitions.values():
        for name, node in definition.get("properties", {}).items():
            if name in COUNTS:
                node["maxItems"] = COUNTS[name]


def _tidy(node: Any) -> Any:
    """Remove titles, defaults and nulls, and forbid unknown members in the contract's objects."""
    if isinstance(node, list):
        return [_tidy(item) for item in node]
    if not isinstance(node, dict):
        return node
    if node.get("$ref") == "#/$defs/JsonValue":
        return {"description": node["description"]} if "description" in node else {}
    kept = {name: _tidy(value) for name, value in node.items() if name not in ("title", "default")}
    if "properties" in node:
        kept["properties"] = {name: _tidy(value) for name, value in node["properties"].items()}
        kept["additionalProperties"] = False
    if "anyOf" in kept:
        kept["anyOf"] = [option for option in kept["anyOf"] if option != {"type": "null"}]
        if len(kept["anyOf"]) == 1:
            kept |= kept.pop("anyOf")[0]
    return kept
