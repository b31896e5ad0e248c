"""The schema of the result object, and a validator for it."""

import re
from typing import Any

from workflows.contract.schema import schema

SCHEMA = schema()
KINDS = {"string": str, "array": list, "object": dict, "integer": int}


def fits(value: Any, node: Any) -> bool:
    """Validate a value, for the part of JSON Schema that ours uses."""
    if isinstance(node, bool):
        return node
    checks = (_fits_kind, _fits_members, _fits_combinations)
    return all(check(value, node) for check in checks)


def _fits_kind(value: Any, node: dict[str, Any]) -> bool:
    if "$ref" in node and not fits(value, SCHEMA["$defs"][node["$ref"].removeprefix("#/$defs/")]):
        return False
    if node.get("type") == "null":
        return value is None
    if "type" in node and (not isinstance(value, KINDS[node["type"]]) or isinstance(value, bool)):
        return False
    if isinstance(value, str) and (
        not re.search(node.get("pattern", ""), value)
        or not node.get("minLength", 0) <= len(value) <= node.get("maxLength", len(value))
    ):
        return False
    if isinstance(value, int) and value < node.get("minimum", value):
        return False
    return value in node.get("enum", [value]) and value == node.get("const", value)


def _fits_members(value: Any, node: dict[str, Any]) -> bool:
    if isinstance(value, dict):
        known = node.get("properties", {})
        extra = node.get("additionalProperties", True)
        inner = all(fits(item, known.get(name, extra)) for name, item in value.items())
        return inner and all(name in value for name in node.get("required", ()))
    if isinstance(value, list):
        contains = "contains" not in node or any(fits(item, node["contains"]) for item in value)
        sized = node.get("minItems", 0) <= len(value) <= node.get("maxItems", len(value))
        return contains and sized and all(fits(item, node.get("items", True)) for item in value)
    return True


def _fits_combinations(value: Any, node: dict[str, Any]) -> bool:
    branch = "then" if "if" in node and fits(value, node["if"]) else "else"
    return (
        all(fits(value, each) for each in node.get("allOf", ()))
        and any(fits(value, each) for each in node.get("anyOf", (True,)))
        and sum(fits(value, each) for each in node.get("oneOf", (True,))) == 1
        and fits(value, node.get(branch, True) if "if" in node else True)
    )
