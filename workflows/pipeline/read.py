"""Strict reading of a definition: all faults are reported at once, each with its place and the nearest known key
(ruling K1).
"""

import re
from functools import lru_cache
from itertools import islice
from typing import cast

from workflows.contract.delegations import Siblings, entry_scope, read_ephemeral, read_id
from workflows.contract.faults import Fault, Faults, did_you_mean, first, quote
from workflows.contract.graph import cycles
from workflows.contract.models import Action, Decision
from workflows.contract.size_limits import BOUNDS, too_long
from workflows.contract.strict_reader import Clean, Scope, kind, set_only
from workflows.model.errors import UsageError
from workflows.pipeline.definition import MAY_SUCCEED, Definition, Schedule, StageKind
from workflows.pipeline.syntax import Format, parse
from workflows.policy.placement import ASKED_LABEL, MOST_LABELS
from workflows.policy.storable_rows import LARGEST
from workflows.text.durations import DurationError, parse_duration

MOST_STAGES = 64
MOST_RETRIES = 10
MOST_BYTES = 256 * 1024

_LABEL = re.compile(ASKED_LABEL)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_REPO = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}/[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_REF = re.compile(r"[^\s-]\S{0,249}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_CRON = re.compile(r"@(?:yearly|annually|monthly|weekly|daily|midnight|hourly)|\S{1,200}+(?: {1,8}+\S{1,200}+){4,6}")
_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+/-]{0,63}")
_SHARED = ("id", "kind", "needs", "timeout", "retry", "require", "prefer")
_SHELL = (*_SHARED, "command", "env")
_AGENT = (
    *_SHARED,
    *("agent", "ephemeral", "action", "prompt", "model", "effort", "success"),
    *("pull_request", "issue"),
)


class DefinitionError(UsageError):
    """A pipeline's file cannot be used; the message lists the first faults, one per line."""

    code = "pipeline_invalid"

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        super().__init__(
            "\n".join(first([fault.message for fault in faults])), "edit the file, then: service pipeline add FILE"
        )
        self.faults = faults


@lru_cache(maxsize=32)
def read(text: str, format_: Format) -> Definition:
    """Return the definition of a file, or raise with all its faults. Results are cached for repeated runs."""
    if len(text.encode(errors="surrogatepass")) > MOST_BYTES:
        raise DefinitionError((Fault("", f"the file is larger than {MOST_BYTES // 1024} KiB"),))
    try:
        value = parse(text, format_)
    except ValueError as error:
        raise DefinitionError((Fault("", str(error)),)) from None
    if not isinstance(value, dict):
        raise DefinitionError((Fault("", f"a pipeline must be an object, not {kind(value)}"),))
    faults = Faults()
    clean = _read_definition(Scope(value, faults))
    if faults:
        raise DefinitionError(faults.report())
    return Definition.model_validate(clean)


def _read_definition(scope: Scope) -> Clean:
    clean: Clean = {
        "name": _matching(scope, "name", _NAME, 'must be 1 to 64 letters, digits, ".", "_" or "-"', required=True),
        "repo": _matching(scope, "repo", _REPO, "must be OWNER/NAME"),
        "base": _matching(scope, "base", _REF, "must be a branch, a tag or a commit"),
        "enabled": _boolean(scope, "enabled"),
        "schedule": _read_schedule(scope),
        "stages": _read_stages(scope),
    }
    scope.close(Definition.model_fields)
    return set_only(clean)


def _matching(scope: Scope, name: str, rule: re.Pattern[str], sentence: str, *, required: bool = False) -> str | None:
    value = scope.text(name, required=required)
    if value is not None and not rule.fullmatch(value):
        scope.fault(name, sentence)
    elif value is not None and name in BOUNDS and (over := too_long(name, value)):
        scope.fault(name, over)
    return value


def _boolean(scope: Scope, name: str) -> bool | None:
    value = scope.take(name)
    if value is not None and not isinstance(value, bool):
        scope.fault(name, f"must be true or false, not {quote(value)}")
        return None
    return value


def _read_schedule(scope: Scope) -> Clean | None:
    value = scope.take("schedule")
    if value is None:
        return None
    if not isinstance(value, dict):
        scope.fault("schedule", f"must be an object, not {kind(value)}")
        return None
    inner = scope.inner("schedule", value)
    clean: Clean = {
        "cron": _matching(inner, "cron", _CRON, 'must be a cron expression such as "0 3 * * 1-5" or "@daily"'),
        "interval": _duration(inner, "interval", at_least=1.0),
        "jitter": _duration(inner, "jitter"),
        "timezone": _matching(inner, "timezone", _ZONE, 'must be a time zone such as "Europe/Rome"'),
    }
    if inner.is_set("cron") == inner.is_set("interval"):
        inner.fault("cron", "or interval is required: set exactly one of them")
    if inner.is_set("timezone") and not inner.is_set("cron"):
        inner.fault("timezone", "is only of use with cron")
    inner.close(Schedule.model_fields)
    return set_only(clean)


def _duration(scope: Scope, name: str, at_least: float = 0.001) -> str | None:
    if isinstance(number := scope.source.get(name), int | float) and not isinstance(number, bool):
        scope.fault(name, f'must be a string with a unit, such as "{number}s" or "{number}m"')
        return None
    value = scope.text(name)
    if value is None:
        return None
    try:
        if parse_duration(value) < at_least:
            scope.fault(name, "must be positive" if at_least < 1 else f"must be at least {at_least:.0f}s")
    except DurationError as error:
        scope.fault(name, str(error))
    return value


def _read_stages(scope: Scope) -> list[Clean]:
    entries = scope.entries("stages", "objects", scope.source.get("stages"))
    if not entries and scope.source.get("stages") in (None, []):
        scope.fault("stages", "is required: a pipeline has at least one stage")
    if len(entries) > MOST_STAGES:
        scope.fault("stages", f"are more than {MOST_STAGES}")
        return []
    siblings = Siblings.of("stages", entries)
    scopes = (entry_scope(siblings, index, entry, scope.faults) for index, entry in enumerate(entries))
    read_ = [_read_stage(inner, siblings, index) for index, inner in enumerate(scopes) if inner is not None]
    needs = {cast("str", stage["id"]): cast("list[str]", stage["needs"]) for stage in read_ if "id" in stage}
    for cycle in islice(cycles(needs), 20):
        scope.fault("stages", f"have a cycle in needs: {' -> '.join(cycle)}")
    return read_


def _read_stage(scope: Scope, siblings: Siblings, index: int) -> Clean:
    own_id = read_id(scope, siblings, index)
    kind_ = scope.choice("kind", StageKind, required=True)
    clean: Clean = {
        "id": own_id,
        "kind": kind_,
        "needs": _read_needs(scope, own_id, siblings),
        "timeout": _duration(scope, "timeout"),
        "retry": _read_retry(scope),
        "require": _read_labels(scope, "require"),
        "prefer": _read_labels(scope, "prefer"),
    }
    match kind_:
        case StageKind.SHELL:
            clean |= {"command": _read_command(scope), "env": _read_env(scope)}
            scope.close(_SHELL)
        case StageKind.AGENT:
            action = scope.choice("action", Action, required=True)
            clean |= {
                **_read_worker(scope, action),
                "action": action,
                "prompt": scope.text("prompt", required=True, of="prompt"),
                "model": scope.text("model", of="model"),
                "effort": scope.text("effort", of="effort"),
                **_read_binding(scope),
                "success": _read_success(scope),
            }
            scope.close(_AGENT)
        case None:
            scope.close(dict.fromkeys((*_SHELL, *_AGENT)))
    return set_only(clean)


def _read_needs(scope: Scope, own_id: str | None, siblings: Siblings) -> list[str]:
    needs = list(dict.fromkeys(scope.strings("needs")))
    for need in needs:
        if need == own_id:
            scope.fault("needs", f"must not name the stage itself: {quote(need)}")
        elif need not in siblings.ids:
            scope.fault(
                "needs",
                f"names {quote(need)}, which is not a stage of this pipeline{did_you_mean(need, siblings.ids)}",
            )
    return needs


def _read_labels(scope: Scope, name: str) -> list[str]:
    labels = list(dict.fromkeys(scope.strings(name)))
    for label in labels:
        if not _LABEL.fullmatch(label):
            scope.fault(name, f"has {quote(label)}, which is not a label of a host")
    if len(labels) > MOST_LABELS:
        scope.fault(name, f"has more than {MOST_LABELS} labels")
    return labels


def _read_retry(scope: Scope) -> int:
    retry = scope.integer("retry", 0, "must be 0 or more") or 0
    if retry > MOST_RETRIES:
        scope.fault("retry", f"must be at most {MOST_RETRIES}")
    return retry


def _read_command(scope: Scope) -> list[str] | None:
    """Read a command: a text for `sh -c`, or a list of a program and its arguments."""
    if isinstance(scope.source.get("command"), list):
        words = scope.strings("command")
        if not words:
            scope.fault("command", "is required")
        return words
    text = scope.text("command", required=True)
    return None if text is None else ["sh", "-c", text]


def _read_env(scope: Scope) -> dict[str, str]:
    value = scope.take("env")
    if value is None:
        return {}
    if not isinstance(value, dict):
        scope.fault("env", f"must be an object, not {kind(value)}")
        return {}
    for name, text in value.items():
        if not _VARIABLE.fullmatch(name):
            scope.fault("env", f"has the name {quote(name)}: letters, digits and _ only, no digit first")
        elif name.startswith("SERVICE_"):
            scope.fault("env", f"has the name {quote(name)}: names that begin with SERVICE_ are the service's own")
        if not isinstance(text, str):
            scope.fault(f"env.{name}", f"must be a string, not {kind(text)}")
    return {name: text for name, text in value.items() if isinstance(text, str)}


def _read_worker(scope: Scope, action: Action | None) -> Clean:
    agent, ephemeral = scope.text("agent", of="agent"), scope.source.get("ephemeral")
    if scope.is_set("agent") == (ephemeral is not None):
        scope.fault("agent", "or ephemeral is required: set exactly one of them")
    if ephemeral is None:
        return {"agent": agent}
    if not isinstance(ephemeral, dict):
        scope.fault("ephemeral", f"must be an object, not {kind(ephemeral)}")
        return {"agent": agent}
    implements = action is Action.IMPLEMENT
    return {"agent": agent, "ephemeral": read_ephemeral(scope.inner("ephemeral", ephemeral), implements=implements)}


def _read_binding(scope: Scope) -> Clean:
    """Read the pull request or issue of the stage's tree (ruling L1)."""
    numbers = {name: scope.integer(name, 1, "must be 1 or more") for name in ("pull_request", "issue")}
    for name, number in numbers.items():
        if number is not None and number > LARGEST:
            scope.fault(name, f"must be at most {LARGEST}")
    if scope.is_set("pull_request") and scope.is_set("issue"):
        scope.fault("pull_request", "and issue are given: a stage belongs to one of them at most")
    return {**numbers}


def _read_success(scope: Scope) -> list[Decision] | None:
    """Read the decisions that count as success of the stage; refuse those that mean failed or blocked."""
    if scope.source.get("success") is None:
        return None
    words = scope.strings("success")
    for word in words:
        if word not in MAY_SUCCEED:
            near = did_you_mean(word, MAY_SUCCEED)
            scope.fault("success", f"must be of {', '.join(MAY_SUCCEED)}, not {quote(word)}{near}")
    if scope.source["success"] == []:
        scope.fault("success", "must not be empty: the stage could never succeed")
    return [Decision(word) for word in words if word in MAY_SUCCEED]
