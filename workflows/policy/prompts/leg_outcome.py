"""A leg's outcome in a prompt: facts, then what the leg itself wrote, cut (rulings E6, P3)."""

from collections.abc import Iterator

from workflows.contract.models import Action, Decision
from workflows.model.briefs import BriefLeg
from workflows.text.quoted_data import Fences, inline

SUMMARY_LIMIT = 800
FINDINGS_LIMIT = 4_000


def leg_outcome(leg: BriefLeg, fences: Fences) -> str:
    """Return a leg's outcome: facts, then what the leg itself wrote."""
    text = f"### Leg {inline(leg.id)}: {leg.state}{f', {leg.decision}' if leg.decision else ''}\n\n"
    text += "\n".join(f"- {name}: {value}" for name, value in _facts(leg))
    if leg.summary:
        text += f"\n\nSummary:\n\n{fences.block(leg.summary[:SUMMARY_LIMIT], author_of(leg))}"
    if leg.findings:
        text += f"\n\nFindings:\n\n{fences.block(leg.findings[:FINDINGS_LIMIT], author_of(leg))}"
    return text


def author_of(leg: BriefLeg) -> str:
    """Return the name under which a leg's text is quoted."""
    return f"leg {leg.id}"


def _facts(leg: BriefLeg) -> Iterator[tuple[str, str]]:
    yield "job", inline(leg.job_id)
    yield "worker", f"{'ephemeral ' if leg.ephemeral else 'agent '}{inline(leg.worker)}, {leg.action}"
    if leg.twin_of:
        yield "not run", f"same fingerprint as {inline(leg.twin_of)}; this is that leg's outcome"
    if leg.phase:
        yield "phase", inline(leg.phase)
    if leg.reason and leg.reason != leg.summary:
        yield "reason", inline(leg.reason)
    if leg.pull_request is not None:
        yield "pull request", f"#{leg.pull_request}"
    if leg.branch:
        yield "branch", inline(leg.branch)
    if leg.touched_files and leg.action is not Action.IMPLEMENT:
        yield "files it changed, thrown away", ", ".join(inline(name) for name in leg.touched_files)
    elif leg.touched_files or leg.decision is Decision.IMPLEMENTED:
        yield "observed files", ", ".join(inline(name) for name in leg.touched_files) or "none: it changed nothing"
