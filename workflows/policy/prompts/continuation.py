"""A coordinator's prompt, rendered from a continuation's brief (ruling E6): always the same sections in the same
order.
"""

from collections.abc import Mapping

from workflows.model.briefs import BudgetLine, ContinuationBrief
from workflows.model.jobs import JobRun
from workflows.model.long_texts import Text
from workflows.model.states import Continuation
from workflows.policy import binding_words
from workflows.policy.prices import dollars
from workflows.policy.prompts.correction import refused_sets
from workflows.policy.prompts.instructions import TITLES, ask, decisions
from workflows.policy.prompts.leg_outcome import author_of, leg_outcome
from workflows.policy.prompts.peoples_words import human_answers, said_block
from workflows.policy.prompts.pull_request_or_issue import belonging
from workflows.policy.prompts.shared_sentences import STARTER, rule, standing, text_of, who
from workflows.policy.prompts.surroundings import Surroundings, render_surroundings
from workflows.text.markdown import excerpt
from workflows.text.quoted_data import Fences, inline, write_fenced

BODY_LIMIT = 8_000
BODIES_LIMIT = 32_000

_INTRODUCTION = "You coordinate a tree of delegated jobs. This prompt is complete: it needs no memory of earlier runs."

_OBEYED = (
    "The exception is your task: reach the goal, within your assignment if you have one, and do what people and the"
    " operator say there."
)

_BUDGETS = {"wall_clock": "time", "cost_usd": "cost"}
"""Names of budgets in the budget line."""

Inlined = dict[tuple[str, str], str]
"""The artifact body to insert below a leg's lines, by the ids of the leg and of its job: legs of different batches may
have equal ids.
"""


def wanted_digests(brief: ContinuationBrief) -> tuple[str, ...]:
    """Return the digests of the stored texts that `render_continuation` needs."""
    bodies = [leg.artifact_digest for leg in brief.legs] if brief.inline_artifact_bodies else []
    digests = [brief.goal.digest, brief.assignment.digest if brief.assignment else None]
    digests += [digest for each in brief.refused for digest in each.long_prompts.values()]
    return tuple(dict.fromkeys(each for each in [*digests, *bodies] if each))


def render_continuation(
    brief: ContinuationBrief,
    bodies: Mapping[str, str],
    artifact_root: str = "<ArtifactRoot>",
    *,
    seed: str = "",
    run: JobRun | None = None,
    surroundings: Surroundings | None = None,
    about: str = "",
) -> str:
    """Render the whole prompt. It says so if a text is missing from `bodies`."""

    def write(fences: Fences) -> str:
        sections = _sections(brief, bodies, artifact_root, fences, run, surroundings, about)
        people, *rest = (f"## {title}\n\n{text}" if text else "" for title, text in sections)
        intro = f"{who(run)}\n{rule(run)}\n\n{_INTRODUCTION}" if run else _INTRODUCTION
        parts = [f"# {TITLES[brief.flavour]}", f"{intro} {fences.meaning(obeyed=_OBEYED)}"]
        template = (run.assignment.worker.template or "").strip() if run else ""
        parts += [*standing(template, fences), people, render_surroundings(surroundings) if surroundings else "", *rest]
        return "\n\n".join(part for part in parts if part) + "\n"

    return write_fenced(seed, write)


def _sections(
    brief: ContinuationBrief,
    bodies: Mapping[str, str],
    artifact_root: str,
    fences: Fences,
    run: JobRun | None,
    surroundings: Surroundings | None,
    about: str,
) -> tuple[tuple[str, str], ...]:
    """Return the prompt's sections, people's answers first."""
    goal = fences.block(text_of(brief.goal, bodies), STARTER)
    related = (belonging(run, surroundings, about, fences) if run else "") or binding_words.sentence(brief.belongs_to)
    goal = f"The task's original instructions, which this job still serves:\n\n{goal}"
    last = brief.flavour is Continuation.FINALIZE
    decide = ""
    if run and not last:
        commands = surroundings is None or surroundings.allowed.commands
        asked = run.assignment.action
        decide = f"\n\nDecide {decisions(asked, run.rules, run.quorum, delegated=True, commands=commands)}"
    return (
        ("Human answers" if brief.answers else "What a person said", human_answers(brief, fences)),
        ("Goal", f"{related}\n\n{goal}".strip()),
        ("Your assignment within it", _assignment(brief, bodies, fences)),
        ("Budget", _budget(brief.budget, last=last)),
        ("Outcomes", _outcomes(brief, _bodies(brief, bodies, artifact_root, fences), fences)),
        ("Skipped or refused, and why", refused_sets(brief, bodies, fences)),
        ("What to do now", f"{ask(brief)}{decide}"),
    )


def _assignment(brief: ContinuationBrief, bodies: Mapping[str, str], fences: Fences) -> str:
    if brief.assignment is None:
        return ""
    parts = ["Another coordinator delegated this part of the goal to you; answer for this part only:"]
    parts.append(fences.block(text_of(brief.assignment, bodies), "the coordinator above you"))
    if brief.orders:
        parts.append("What people said when they had it run again:")
    parts += [said_block(order, fences) for order in brief.orders]
    return "\n\n".join(parts)


def _budget(line: BudgetLine, *, last: bool) -> str:
    tokens = f" of {line.token_budget:,}" if line.token_budget else ""
    budget = f" of ${line.cost_budget_usd:.2f}" if line.cost_budget_usd else ""
    used = (
        f"Jobs {line.jobs} of {line.jobs_cap}; depth {line.depth} of {line.depth_cap}; "
        f"time {_minutes(line.elapsed_seconds)} of {_minutes(line.wall_clock_seconds)}; "
        f"tokens {line.tokens:,}{tokens}; cost {dollars(line.cost_usd, assumed=line.price_assumed)}{budget}."
    )
    lines = [used]
    if line.warned and not last:
        near = ", ".join(_BUDGETS.get(each, each) for each in line.warned)
        lines.append(f"80 % or more is used of: {near}. Delegate only what the goal cannot do without.")
    if line.depth >= line.depth_cap and not last:
        lines.append("You are at the depth cap: this job may not delegate.")
    return "\n".join(lines)


def _minutes(seconds: float) -> str:
    hours, minutes = divmod(int(seconds) // 60, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def _outcomes(brief: ContinuationBrief, inlined: Inlined, fences: Fences) -> str:
    parts = [leg_outcome(leg, fences) + inlined.get((leg.id, leg.job_id), "") for leg in brief.legs]
    lost = ", ".join(map(inline, brief.previous_discarded))
    if brief.previous_summary:
        decision = f" ({brief.previous_decision})" if brief.previous_decision else ""
        own = fences.block(brief.previous_summary, "you, in your last run")
        discarded = f"\n\nFiles you changed in that run, which are thrown away: {lost}." if lost else ""
        parts.append(f"### Your own last result{decision}\n\n{own}{discarded}")
    return "\n\n".join(parts)


def _bodies(brief: ContinuationBrief, bodies: Mapping[str, str], artifact_root: str, fences: Fences) -> Inlined:
    """Return the artifact bodies to inline, cut to a limit for each leg and for the whole continuation."""
    if not brief.inline_artifact_bodies:
        return {}
    left, parts = BODIES_LIMIT, Inlined()
    for leg in brief.legs:
        if leg.artifact_digest is None or leg.twin_of:
            continue
        whole = f"{artifact_root}/delegations/{leg.parent_job_id}/brief.md"
        body = text_of(Text(digest=leg.artifact_digest), bodies)
        shown = fences.block(excerpt(body, min(left, BODY_LIMIT), whole), author_of(leg))
        parts[leg.id, leg.job_id] = f"\n\nArtifact body:\n\n{shown}"
        left = max(0, left - min(len(body), BODY_LIMIT))
    return parts
