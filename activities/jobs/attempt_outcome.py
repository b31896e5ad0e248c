"""The record of an ended attempt: a small outcome with notices for the tree, and the complete data for the store."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from activities.host.context import Context
from activities.jobs.deferral import earlier_dirs, try_dir
from activities.jobs.execution import AGAIN, AGAIN_REASON, FRESH, Executed
from activities.jobs.judgement import Failure, Settled
from activities.jobs.session import EarlierSession
from activities.jobs.workspace import Evidence
from activities.redaction.kept_secrets import without_words
from activities.redaction.redact import map_texts, redact_all, redact_begin, redact_end, redact_text
from activities.runs.supervised_run import Claim
from activities.store.attempt_rows import AttemptRow, Deferral
from activities.store.github import facts
from activities.store.registry import agent_rows
from workflows.contract.canonical import canonical, canonical_json
from workflows.contract.models import Action, Decision, Delegation, Notice, ServiceResult
from workflows.contract.parse import Accepted, Rejected
from workflows.contract.redact_result import redact_result
from workflows.contract.render import render_findings
from workflows.contract.size_limits import cut_to_bound, too_long
from workflows.contract.storable import storable_model, storable_value
from workflows.github.facts import FactKind
from workflows.model.event_kinds import EventKind
from workflows.model.jobs import JobOutcome, JobRun
from workflows.model.long_texts import LongPrompt
from workflows.model.spend import Usage
from workflows.model.states import Continuation, JobState
from workflows.model.workers import Worker
from workflows.policy.decisions import state_of
from workflows.policy.loops import folded_digest, side_effects

SUMMARY_LIMIT = 2000
FINDINGS_LIMIT = 4000
TOUCHED_LIMIT = 100
NOTICES_LIMIT = 50
OUTPUT_LIMIT = 12_000
PROMPT_LIMIT = 1024
"""Maximum bytes of a delegation's prompt in an outcome: a tree of 64 legs stays small."""

PROMPT_BEGINNING = 200


def redact_for_store(context: Context, result: ServiceResult) -> ServiceResult:
    """Redact an agent's result for storage (ruling N7); in delegations' prompts and the artifact body, references
    replace them, since later jobs need them.
    """

    def driving(text: str) -> str:
        return context.kept.hide(without_words(text))

    clean = redact_result(result, lambda text: redact_text(without_words(text)))
    legs = tuple(leg.model_copy(update={"prompt": driving(leg.prompt)}) for leg in clean.delegations)
    return clean.model_copy(update={"delegations": legs, "artifact_body": map_texts(clean.artifact_body, driving)})


def outcome(
    context: Context, run: JobRun, judgement: Settled, evidence: Evidence, usage: Usage, branch: str | None
) -> JobOutcome:
    """Return the outcome from which the tree decides. Large data stays in the store."""
    ended = JobOutcome(
        job_id=run.job_id,
        attempt=run.attempt,
        state=JobState.FAILED,
        usage=usage,
        priced=True,
        branch=branch if evidence.head_sha else None,
        head_sha=evidence.head_sha,
        touched_files=tuple(map(without_words, evidence.touched.files[:TOUCHED_LIMIT])) if evidence.touched else (),
    )
    if evidence.problem and branch:
        return ended.model_copy(update={"reason": redact_text(evidence.problem)})
    match judgement:
        case Failure(reason=reason, state=state, first=first):
            return ended.model_copy(update={"state": state, "reason": redact_text(reason), "first": first})
        case Rejected(faults=faults):
            count = f"{len(faults)} faults" if len(faults) > 1 else "a fault"
            reason = f"the result has {count} after one repair: {redact_text(faults[0].message)}"
            return ended.model_copy(update={"reason": reason})
        case Accepted(result=result, notices=notices, not_kept=not_kept):
            ended = ended.model_copy(update={"notices": notices, "not_kept": not_kept})
            return _with_result(context, run, ended, redact_for_store(context, result), branch)


def travelling(outcome: JobOutcome) -> JobOutcome:
    """Redact an outcome and limit its size, so that a history can hold it whatever the program printed (ruling B6)."""
    short = {
        "reason": redact_begin(outcome.reason, SUMMARY_LIMIT),
        "conflict": redact_begin(outcome.conflict, SUMMARY_LIMIT),
        "notices": tuple(map(_short, outcome.notices[:NOTICES_LIMIT])),
    }
    clean = storable_model(redact_all(outcome.model_copy(update=short)))
    session, model = clean.session, clean.model
    return clean.model_copy(
        update={
            "reason": clean.reason[:SUMMARY_LIMIT],
            "conflict": clean.conflict[:SUMMARY_LIMIT],
            "session": session if session and not too_long("session", session) else None,
            "model": cut_to_bound("model", model) if model else None,
        }
    )


def _short(notice: Notice) -> Notice:
    lists = {name: value[:NOTICES_LIMIT] for name, value in notice.data.items() if isinstance(value, list)}
    shortened = {
        name: [cut_to_bound("reason", redact_begin(each, SUMMARY_LIMIT)) for each in value]
        for name, value in lists.items()
    }
    message = redact_begin(notice.message, SUMMARY_LIMIT)
    return notice.model_copy(update={"message": message, "data": {**notice.data, **shortened}})


def payload(context: Context, judgement: Settled, evidence: Evidence) -> dict[str, Any]:
    """Return the result and its observation (spec: result observation)."""
    if not isinstance(judgement, Accepted):
        return {}
    whole: dict[str, Any] = {"service_result": canonical(redact_for_store(context, judgement.result))}
    if evidence.observation:
        whole["result_observation"] = storable_model(evidence.observation).model_dump(mode="json")
    return whole


def diagnostics(judgement: Settled, runs: list[Executed], evidence: Evidence) -> dict[str, Any]:
    """Return diagnostics: the box; a failure's reasons with the agent's last output; a reader's discarded changes.

    The faults are those of the last result that was read, so a failed repair doesn't hide the first result's faults.
    """
    details: dict[str, Any] = {"box": runs[-1].box} if runs and runs[-1].box else {}
    if not isinstance(judgement, Accepted):
        read = [run.result for run in runs if isinstance(run.result, Rejected)]
        for rejected in read[-1:]:
            details["faults"] = [redact_text(fault.message) for fault in rejected.faults]
        for last in runs[-1:]:
            details["stderr"] = redact_text(last.stderr)
            details["output"] = redact_end(last.report.text.decode(errors="replace"), OUTPUT_LIMIT)
            details["end"] = last.end.kind.value
    if evidence.diff:
        details["discarded_diff"] = redact_text(evidence.diff.text) + ("\n[cut here]" if evidence.diff.cut else "")
    if evidence.joined:
        details["joined"] = list(evidence.joined)
    if evidence.lines:
        details["lines"] = list(evidence.lines)
    return {name: storable_value(value) for name, value in details.items()}


def _own_pull_request(context: Context, run: JobRun, branch: str | None) -> int | None:
    """Return the pull request that the branch was published as before the job."""
    if not branch or not (run.own_branch or run.shared_worktree):
        return None
    published = facts.of_root(context.store, run.root_job_id)
    numbers = (each.github_id for each in published if (each.kind, each.subject) == (FactKind.PUBLISH, branch))
    return next((int(number) for number in numbers if number), None)


def _with_result(
    context: Context, run: JobRun, ended: JobOutcome, result: ServiceResult, branch: str | None
) -> JobOutcome:
    """Add what the agent returned to the outcome of its attempt."""
    body = _keep_body(context, run, result)
    legs, long = _travelling(context, result.delegations)
    own = _own_pull_request(context, run, branch)
    number = own or run.assignment.pull_request
    return ended.model_copy(
        update={
            "state": state_of(result.decision),
            "decision": result.decision,
            "summary": result.summary[:SUMMARY_LIMIT],
            "findings": render_findings(result, FINDINGS_LIMIT),
            "delegations": legs,
            "long_prompts": long,
            "human_questions": result.human_questions,
            "result_digest": context.artifacts.put(canonical_json(result).encode()),
            "artifact_digest": body,
            "pull_request": own,
            "progress": side_effects(result, pull_request=number, head_sha=ended.head_sha, artifact_digest=body),
            "agents": _routable(context, run, result.delegations),
            "templates": agent_rows.templates(context.store) if result.delegations else (),
        }
    )


def _routable(context: Context, run: JobRun, delegations: tuple[Delegation, ...]) -> tuple[Worker, ...]:
    """Return the agents valid on the repository: complete if a delegation names them, else name and runtime only."""
    named = {leg.agent for leg in delegations}
    there = agent_rows.routable(context.store, run.repo) if delegations else ()
    return tuple(
        context.artifacts.travelling(agent) if agent.name in named else Worker(name=agent.name, runtime=agent.runtime)
        for agent in there
    )


def _keep_body(context: Context, run: JobRun, result: ServiceResult) -> str | None:
    """Store a result's artifact body for the child jobs: a text unchanged, other values as canonical JSON."""
    body: JsonValue = result.artifact_body
    if body is None:
        return None
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False, sort_keys=True)
    digest = context.artifacts.put(text.encode())
    if result.delegations:
        context.artifacts.add_to_brief(run.job_id, "artifact_body", digest)
    return digest


def _travelling(
    context: Context, delegations: tuple[Delegation, ...]
) -> tuple[tuple[Delegation, ...], dict[str, LongPrompt]]:
    """Shorten long prompts in delegations to fit a history, and store the complete ones."""
    legs, long = [], {}
    for leg in delegations:
        if len(leg.prompt.encode()) > PROMPT_LIMIT:
            long[leg.id] = LongPrompt(
                digest=context.artifacts.put(leg.prompt.encode()), folded=folded_digest(leg.prompt)
            )
            legs.append(leg.model_copy(update={"prompt": leg.prompt[:PROMPT_BEGINNING]}))
        else:
            legs.append(leg)
    return tuple(legs), long


SHOWN, MOST = 5, 50
"""Maximum number of oddities in a sentence, and in an event."""


def of_attempt(run: JobRun, row: AttemptRow, before: Sequence[Deferral], goes_on: EarlierSession) -> tuple[Notice, ...]:
    """Return the notices that depend only on the attempt's folders, of all its tries, not on its outcome."""
    tries = (*earlier_dirs(row, before), try_dir(row, before))
    again = any(_has_process(each, AGAIN) for each in tries)
    lost = any(_has_process(each, FRESH) for each in tries)
    notices = []
    if again:
        message = f"{run.job_id} was {AGAIN_REASON}"
        notices.append(Notice(kind=EventKind.RUN_STARTED_AGAIN, message=message, data={"attempt": run.attempt}))
    why = goes_on.why_not
    if not why and lost:
        why = "its program has lost it"
    if not why and again and goes_on.folder is not None:
        why = "its run was started again"
    if why:
        message = f"{run.job_id} began a fresh session: {why}"
        notices.append(
            Notice(kind=EventKind.SESSION_NOT_RESUMED, message=message, data={"session": goes_on.session, "why": why})
        )
    return tuple(notices)


def of_evidence(run: JobRun, evidence: Evidence) -> tuple[Notice, ...]:
    """Return a notice of entries in the work folder that a commit can't contain."""
    if not evidence.odd:
        return ()
    names = "; ".join(evidence.odd[:SHOWN]) + (
        f"; and {len(evidence.odd) - SHOWN} more" if evidence.odd[SHOWN:] else ""
    )
    message = f"{run.job_id} left files in its work folder that are ignored: {names}"
    return (Notice(kind=EventKind.WORK_LEFT_OUT, message=message, data={"found": list(evidence.odd[:MOST])}),)


def of_edits(run: JobRun, judgement: Settled, evidence: Evidence) -> tuple[Notice, ...]:
    """Return a notice if a job reports that it implemented its task but changed no file, or if it changed files that
    are discarded because its action is not implement.
    """
    if not isinstance(judgement, Accepted) or evidence.touched is None or not evidence.touched.complete:
        return ()
    result, action = judgement.result, run.assignment.action
    files = [without_words(name) for name in evidence.touched.files]
    implemented = result.decision is Decision.IMPLEMENTED
    if action is not Action.IMPLEMENT and files and (implemented or result.changes_made):
        named = f"{', '.join(files[:SHOWN])}{f' and {len(files) - SHOWN} more' if files[SHOWN:] else ''}"
        message = f"{run.job_id} changed files, which are thrown away, because its action is {action}: {named}"
        return (Notice(kind=EventKind.EDITS_DISCARDED, message=message, data={"files": files[:MOST]}),)
    own = run.continuation is Continuation.NONE and not result.delegations and not evidence.joined
    if action is Action.IMPLEMENT and own and implemented and not files:
        message = f"{run.job_id} says that it implemented its task, and changed no file"
        return (Notice(kind=EventKind.NOTHING_CHANGED, message=message, data={"claims": len(result.changes_made)}),)
    return ()


def of_repair(run: JobRun, runs: Sequence[Executed]) -> tuple[Notice, ...]:
    """Return a notice of a result that the agent was asked to correct, with its faults (ruling A5)."""
    if len(runs) < 2 or not isinstance(first := runs[0].result, Rejected):
        return ()
    faults, accepted = [redact_text(fault.message) for fault in first.faults], isinstance(runs[-1].result, Accepted)
    more = f" (and {len(faults) - 1} more)" if faults[1:] else ""
    did = "did" if accepted else "did not"
    message = f"{run.job_id} was asked to correct its result, and {did}: {faults[0]}{more}"
    return (Notice(kind=EventKind.RESULT_REPAIRED, message=message, data={"faults": faults, "accepted": accepted}),)


def of_output(run: JobRun, executed: Executed | None) -> tuple[Notice, ...]:
    """Return a notice of output that was too long to be read."""
    if executed is None or not executed.left_out:
        return ()
    gap = f"{executed.left_out} bytes in the middle of {executed.end.stdout}"
    message = f"{run.job_id} printed too much to read: {gap} were left out"
    return (Notice(kind=EventKind.WORK_LEFT_OUT, message=message, data={"found": [gap]}),)


def _has_process(run_dir: Path, suffix: str) -> bool:
    """Return whether a run's claim names a process. A claim without one only keeps a program from starting in the
    folder.
    """
    claim = Claim.read(run_dir.with_name(run_dir.name + suffix))
    return claim is not None and claim.pid is not None
