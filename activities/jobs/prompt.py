"""The prompt of an agent: its task or its continuation, with texts stored by digest filled in."""

from collections.abc import Iterable

from activities.host.context import Context
from activities.jobs.surroundings import surroundings_of
from activities.jobs.workspace import Workspace
from activities.runtimes.known_runtimes import program_of
from activities.sealing import seal_key
from activities.store.registry import agent_rows
from workflows.contract.models import Action, ServiceResult
from workflows.contract.prompt_contract import Form, explain_contract
from workflows.model.briefs import ContinuationBrief
from workflows.model.errors import NotFoundError
from workflows.model.jobs import JobRun
from workflows.model.long_texts import Text
from workflows.model.workers import Worker
from workflows.policy.prompts.continuation import render_continuation, wanted_digests
from workflows.policy.prompts.correction import is_correction, put_prompts_back
from workflows.policy.prompts.shared_sentences import text_of
from workflows.policy.prompts.surroundings import Surroundings
from workflows.policy.prompts.task import Artifact, render_task
from workflows.policy.prompts.team import Installed, render_team
from workflows.text.quoted_data import inline


def prompt_of(context: Context, run: JobRun, workspace: Workspace, *, cut_short: bool = False) -> str:
    """Return the whole prompt of a run, with separately stored secrets filled in (ruling N7).

    If the run continues the work of an interrupted run, the prompt begins with a note on that.
    """
    prompt = context.kept.show(_prompt_of(context, run, surroundings_of(context, run, workspace)))
    if workspace.snapshot is not None:
        return _after_a_lost_machine(workspace.snapshot) + prompt
    return _AFTER_AN_EARLIER_TRY + prompt if cut_short and workspace.worktree.branch else prompt


_AFTER_AN_EARLIER_TRY = (
    "An earlier try of this job was cut short from outside. What it left is in your working folder: "
    "look at it first, and go on from there.\n\n"
)


def _after_a_lost_machine(left_out: Iterable[str]) -> str:
    """Return a note that the work folder has a snapshot from a lost host, and which files the snapshot lacks."""
    lacks = "".join(f"- {inline(file)}\n" for file in left_out)
    return (
        "An earlier attempt of this job was cut short: its machine was lost. Its files, as they were at most some "
        "minutes before, are in your working folder, uncommitted: look at them first, and go on from there.\n"
        + (f"These were not kept:\n{lacks}" if lacks else "")
        + "\n"
    )


def _prompt_of(context: Context, run: JobRun, surroundings: Surroundings) -> str:
    worker = run.assignment.worker.model_copy(update={"template": _template(context, run.assignment.worker)})
    run = run.model_copy(update={"assignment": run.assignment.model_copy(update={"worker": worker})})
    if run.brief:
        _write_briefs(context, run.brief)
        bodies = _texts(context, wanted_digests(run.brief))
        root, seed = str(context.artifacts.root), seed_of(context, run)
        about = _text(context, run.assignment.about)
        text = render_continuation(run.brief, bodies, root, seed=seed, run=run, surroundings=surroundings, about=about)
        return f"{text.strip()}\n\n{_ending(context, run)}"
    instructions = context.artifacts.read(run.assignment.prompt)
    return render_task(
        run,
        instructions,
        _ending(context, run),
        _artifact(context, run),
        surroundings=surroundings,
        goal=_text(context, run.goal),
        about=_text(context, run.assignment.about),
        seed=seed_of(context, run),
    )


def form_of(run: JobRun) -> Form:
    """Return how much a run's prompt explains delegating (ruling P4)."""
    if not run.may_delegate:
        return Form.LEAF
    if is_correction(run):
        return Form.SHORT
    plans = run.delegation_id is None or Action.ASK in run.assignment.worker.capabilities
    return Form.WHOLE if plans else Form.SHORT


def _ending(context: Context, run: JobRun) -> str:
    """Return the prompt's ending: for a coordinator the team's description, then the contract (rulings P1, P4)."""
    form, budget = form_of(run), run.bounds_left
    tool = context.settings.result_tool(run.assignment.worker.runtime)
    corrects = form is Form.SHORT and is_correction(run)
    if form is not Form.WHOLE and not corrects:
        return explain_contract(form, tool=tool)
    judged = not run.brief and bool(run.rules)
    installed = [_describe_runtime(context, name) for name in context.settings.configured_runtimes]
    there = agent_rows.routable(context.store, run.repo)
    team = render_team(
        there,
        installed,
        run.assignment.action,
        budget,
        judged=judged,
        read_only=run.read_only,
        corrects=corrects,
    )
    return f"{team}\n\n{explain_contract(form, budget.width if budget else 0, tool)}"


def _describe_runtime(context: Context, name: str) -> Installed:
    settings = context.settings
    section = settings.runtime(name)
    program = program_of(name, section.adapter)
    what = program.name if program else "a script"
    return Installed(name, what, section.default_model, settings.builds_with(name), settings.tiers_of(name))


def seed_of(context: Context, run: JobRun, what: str = "task") -> str:
    """Derive the seed of a prompt's mark: constant for an attempt, and unpredictable without the home's key."""
    key = seal_key.ensure(context.home.root)
    return seal_key.derive(key, "prompt", run.job_id, str(run.attempt), what).hex()


def _template(context: Context, worker: Worker) -> str | None:
    """Return the worker's template: for an ephemeral worker, that of the registered agent it names; for an agent, its
    own as of the dispatch.
    """
    if worker.template_digest:
        return context.artifacts.get(worker.template_digest).decode()
    if not worker.ephemeral or not worker.template:
        return worker.template
    agent = agent_rows.get(context.store, worker.template)
    return agent.worker.template if agent else None


def _artifact(context: Context, run: JobRun) -> Artifact | None:
    if run.artifact_digest is None or run.parent_job_id is None:
        return None
    body = _texts(context, [run.artifact_digest]).get(run.artifact_digest, "")
    brief = context.artifacts.brief(run.parent_job_id)
    if body and not brief.exists():  # the job above ran on another host
        context.artifacts.add_to_brief(run.parent_job_id, "artifact_body", run.artifact_digest)
    return Artifact(run.artifacts, body, str(brief))


def _text(context: Context, text: Text | None) -> str:
    if text is None:
        return ""
    return text_of(text, _texts(context, [text.digest] if text.digest else ()))


def with_whole_prompts(context: Context, run: JobRun, result: ServiceResult) -> ServiceResult:
    """Complete the delegations' prompts that a run's own prompt showed shortened (ruling C6)."""
    if run.brief is None or not is_correction(run):
        return result
    bodies = _texts(context, wanted_digests(run.brief))
    return put_prompts_back(result, run.brief, bodies)


def _write_briefs(context: Context, brief: ContinuationBrief) -> None:
    """Write the children's complete bodies to the files that shortened ones point to (spec: optional inlining)."""
    for leg in brief.legs:
        if leg.artifact_digest and not leg.twin_of:
            title = f"leg {leg.id} ({leg.job_id})"
            context.artifacts.add_to_brief(leg.parent_job_id or brief.parent_job_id, title, leg.artifact_digest)


def _texts(context: Context, digests: Iterable[str]) -> dict[str, str]:
    """Return the readable texts; missing ones are reported by the code that uses them."""
    texts: dict[str, str] = {}
    for digest in digests:
        try:
            texts[digest] = context.artifacts.get(digest).decode(errors="replace")
        except NotFoundError:
            continue
    return texts
