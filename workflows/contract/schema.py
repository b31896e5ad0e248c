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

OF_DELEGATIONS = ("delegations", "artifact_body")
"""The members of a result that only delegating needs."""

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


def tool_schema(*, leaf: bool = False, width: int = 0) -> Schema:
    """Return the schema for a tool that refuses other results (ruling S6): one object without `$ref`, `if` and `allOf`,
    which some programs don't read. A leaf's has no delegations, another's at most `width`.
    """
    whole = schema()
    inner = whole["$defs"]["ServiceResult"]["properties"]
    for name in OF_DELEGATIONS if leaf else ():
        del inner[name]
    if width and not leaf:
        inner["delegations"]["maxItems"] = width
    result = _inlined(whole["properties"][KEY], whole["$defs"])
    return {"type": "object", "properties": {KEY: result}, "required": [KEY], "additionalProperties": False}


def strict_schema(*, leaf: bool = False) -> Schema:
    """Return the schema for a model that is forced to it (ruling S6): every member is required, null for absent, and
    values of any shape are texts.
    """
    strict: Schema = _strict(tool_schema(leaf=leaf))
    return strict


def _inlined(node: Any, definitions: Schema) -> Any:
    """Replace references by what they name, and leave out rules between members, which `validate` checks."""
    if isinstance(node, list):
        return [_inlined(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        named = definitions[node["$ref"].removeprefix("#/$defs/")]
        about = " ".join(part["description"] for part in (node, named) if "description" in part)
        return _inlined({**named, "description": about}, definitions)
    return {name: _inlined(value, definitions) for name, value in node.items() if name != "allOf"}


_STRICT = ("type", "description", "enum", "properties", "required", "additionalProperties", "items")


def _strict(node: Schema) -> Schema:
    strict = {name: value for name, value in node.items() if name in _STRICT}
    if "type" not in node:  # any JSON, or a text or an object of any shape
        return {**strict, "type": "string"}
    if node["type"] == "array":
        strict["items"] = _strict(node["items"])
    if node["type"] == "object":
        members = {name: _strict(value) for name, value in node["properties"].items()}
        absent = members.keys() - {*node["required"]}
        strict["properties"] = {
            name: {"anyOf": [member, {"type": "null"}]} if name in absent else member
            for name, member in members.items()
        }
        strict["required"] = [*members]
    return strict


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
