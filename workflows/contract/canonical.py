"""The canonical form of a result: fields in the spec's order, unset optional members left out."""

import json

from pydantic import JsonValue

from workflows.contract.locate import KEY
from workflows.contract.models import ServiceResult

_ALWAYS = ("decision", "summary", "findings", "changes_made", "tests_run", "needs", "delegations")


def canonical(result: ServiceResult) -> dict[str, JsonValue]:
    """Return the content of `service_result`: required members always, others if set."""
    members = result.model_dump(mode="json", exclude_defaults=True)
    return {name: members.get(name, []) for name in ServiceResult.model_fields if name in _ALWAYS or name in members}


def canonical_json(result: ServiceResult) -> str:
    """Return the whole object `{"service_result": ...}` on one line; parsing it returns an equal result."""
    return json.dumps({KEY: canonical(result)}, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
