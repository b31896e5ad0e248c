"""A result written the one canonical way: the spec's field order, unset optional members left out."""

import json

from pydantic import JsonValue

from workflows.contract.locate import KEY
from workflows.contract.models import ServiceResult

_ALWAYS = ("decision", "summary", "findings", "changes_made", "tests_run", "needs", "delegations")


def canonical(result: ServiceResult) -> dict[str, JsonValue]:
    """What is inside `service_result`: the required members always, the others when set."""
    told = result.model_dump(mode="json", exclude_defaults=True)
    return {name: told.get(name, []) for name in ServiceResult.model_fields if name in _ALWAYS or name in told}


def canonical_json(result: ServiceResult) -> str:
    """The whole object `{"service_result": ...}` on one line; reading it gives the same result again."""
    return json.dumps({KEY: canonical(result)}, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def from_canonical(text: str | bytes) -> ServiceResult:
    """The result again."""
    return ServiceResult.model_validate(json.loads(text)[KEY])
