"""The prompt that asks a coordinator to correct a set that was not dispatched (ruling C6).

It shows the set. Of a long prompt it shows the beginning, and a mark in place of the rest; the rest is put back into
the corrected set.
"""

import json
from collections.abc import Iterable, Mapping

from workflows.contract.models import Delegation, ServiceResult
from workflows.model.briefs import ContinuationBrief, Correction
from workflows.model.jobs import JobRun
from workflows.model.long_texts import RefusedSet, Text
from workflows.policy.prompts.shared_sentences import text_of
from workflows.text.digests import digest
from workflows.text.plurals import quantity
from workflows.text.quoted_data import Fences, inline

SHOWN = 300
"""Characters of a long prompt that are shown."""

_PREFLIGHT = """\
Your last set was **not dispatched**: nothing of it ran, and nothing of it will. The faults are listed above, and the \
set as you returned it.

1. Correct the faults and return the whole set again; legs without a fault need no change.
2. {workers}
3. If the goal can be reached without these legs, finish it and return no delegations.

A set with the same faults again brings the task closer to its end: after a few refusals in a row it is finalized."""

_REPEATED = """\
Your last set was **not dispatched**: the same set has already run in this task, and running it again would give the \
same outcomes. This is the one warning; the next repetition ends the task.

1. Look at the outcomes above: what did the earlier run leave undone, and why?
2. Return a different set: other work, another approach, a sharper prompt, or a stronger `model`.
3. If nothing different is left to try, finish: return your result without delegations, or `blocked` with what is \
missing in `needs`."""

_NO_PROGRESS = """\
Your last sets ended with the same decisions and changed nothing: no new files, tests, pull requests or artifacts. \
This is the one warning; another generation without effect ends the task.

1. Find out why the legs have no effect before you delegate again.
2. Return a set that will leave something behind which was not there before; or do the work in this job yourself.
3. If nothing is left to change, finish: return your result without delegations, or `blocked` with what is missing in \
`needs`."""

_LEFT_OUT = """\
Your last set was **not dispatched**, through no fault of it: the task started nothing when it came, and it was too \
large to be kept until the task went on.

1. Return the delegations that are still needed, in a smaller set: fewer of them, with shorter prompts and labels. \
What comes after them can wait for your next continuation.
2. If nothing of it is needed any more, finish: return your result without delegations."""


def is_correction(run: JobRun) -> bool:
    """Return whether a run only has to correct a set that preflight refused; it need not plan."""
    return run.brief is not None and run.brief.correction is Correction.PREFLIGHT


def how_to_correct(brief: ContinuationBrief) -> str:
    """Return the instructions for the correction."""
    match brief.correction:
        case Correction.PREFLIGHT:
            return _PREFLIGHT.format(workers=_workers(brief))
        case Correction.REPEATED:
            return _REPEATED
        case Correction.LEFT_OUT:
            return _LEFT_OUT
        case Correction.NO_PROGRESS | None:
            return _NO_PROGRESS


def _workers(brief: ContinuationBrief) -> str:
    ephemeral = '`"ephemeral": {"runtime": ...}` in place of `agent` for a throwaway worker'
    if not brief.valid_agents:
        return f"No registered agent is valid on this repository: use {ephemeral}."
    names = ", ".join(map(inline, brief.valid_agents))
    return f"Agents valid on this repository: {names}. Or use {ephemeral}."


def refused_sets(brief: ContinuationBrief, bodies: Mapping[str, str], fences: Fences) -> str:
    """Return the notes on refusals, and the delegations that were not dispatched."""
    text = "\n".join(f"- {inline(note)}" for note in brief.notes)
    for refused in brief.refused:
        if refused.left_out:
            text += (
                f"\n\nNot dispatched, and not listed here: {quantity(refused.left_out, 'delegation')} of the job"
                f" {inline(refused.job_id)}. With the others that waited they were more than could be kept."
            )
            continue
        short = brief.correction is Correction.PREFLIGHT
        delegations = [_delegation(leg, refused, bodies, short=short) for leg in refused.delegations]
        shown = (json.dumps(delegation, ensure_ascii=False) for delegation in delegations)
        by = f" (returned by {inline(refused.job_id)})" if len(brief.refused) > 1 else ""
        text += f"\n\nThe delegations that were not dispatched{by}, {'' if short else 'complete, '}one a line:\n\n"
        text += fences.block("\n".join(shown), f"job {refused.job_id}")
    return text.strip()


def _delegation(leg: Delegation, of: RefusedSet, bodies: Mapping[str, str], *, short: bool) -> dict[str, object]:
    shown: dict[str, object] = leg.model_dump(mode="json", exclude_defaults=True)
    prompt = whole_prompt(leg, of, bodies)
    return shown | {"prompt": shorten(prompt) if short else prompt}


def whole_prompt(leg: Delegation, of: RefusedSet, bodies: Mapping[str, str]) -> str:
    """Return the whole prompt of a delegation that was not dispatched."""
    stored = of.long_prompts.get(leg.id)
    return leg.prompt if stored is None else text_of(Text(digest=stored), bodies)


def put_prompts_back(result: ServiceResult, brief: ContinuationBrief, bodies: Mapping[str, str]) -> ServiceResult:
    """Restore every prompt that the correction's prompt showed shortened."""
    whole = [whole_prompt(leg, refused, bodies) for refused in brief.refused for leg in refused.delegations]
    legs = (leg.model_copy(update={"prompt": restore(leg.prompt, whole)}) for leg in result.delegations)
    return result.model_copy(update={"delegations": tuple(legs)})


def shorten(prompt: str) -> str:
    """Return the beginning of a long prompt, followed by a mark for the rest."""
    shown, mark, _ = _split(prompt)
    return shown + mark if mark else prompt


def restore(text: str, prompts: Iterable[str]) -> str:
    """Replace each mark in the text by the rest of the prompt that it stands for."""
    for _, mark, rest in map(_split, prompts):
        text = text.replace(mark, rest) if mark else text
    return text


def _split(prompt: str) -> tuple[str, str, str]:
    """Split a long prompt between words; return the part that is shown, the mark, and the rest."""
    shown = prompt[:SHOWN].rpartition(" ")[0] or prompt[:SHOWN]
    rest = prompt[len(shown) :]
    mark = f"[... {len(rest):,} characters more: leave this in place of them, {digest(rest)[:8]}]"
    return (shown, mark, rest) if len(rest) > 2 * len(mark) else (prompt, "", "")
