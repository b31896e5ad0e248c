"""The request for an attempt, which its host receives, and the outcome, which the host reports.

Wire format: a new field needs a default, unknown ones are ignored, and everything large travels by digest.
"""

from workflows.contract.models import Decision, Delegation, HumanQuestion, Notice, SynthesisRule
from workflows.model.briefs import BriefLeg, BudgetLine, ContinuationBrief
from workflows.model.long_texts import LongPrompt, Text
from workflows.model.spend import Usage
from workflows.model.states import Continuation, JobState
from workflows.model.wire import Wire
from workflows.model.workers import Assignment, Worker


class Work(Wire):
    """A branch that a job of a chain left, with its leg; without a leg, the coordinator wrote it itself."""

    leg: str = ""
    job_id: str = ""
    branch: str
    head: str = ""
    """The job's last commit; empty if the work is known by its branch alone."""


class JobRun(Wire):
    """One attempt of one job, complete: everything its host needs to know."""

    job_id: str
    root_job_id: str
    parent_job_id: str | None = None
    delegation_id: str | None = None
    delegation_depth: int = 0
    task_id: str
    repo: str
    assignment: Assignment
    attempt: int = 1
    offer: int = 1
    """The number of the offer: after a take-back, the attempt is offered again under a new one (ruling B5)."""
    continuation: Continuation = Continuation.NONE
    brief: ContinuationBrief | None = None
    before: str = ""
    """For a leg, how the attempt before this one ended (ruling P3)."""
    moved_from: int = 0
    """The attempt that a lost host had begun: this attempt continues from its last snapshot (ruling Q5)."""
    guidance: tuple[str, ...] = ()
    """People's words for this attempt: instructions of a retry, answers to the leg's own questions (ruling F3)."""
    artifacts: tuple[str, ...] = ()
    artifact_digest: str | None = None
    """The delegating result's `artifact_body`, for a leg that names artifacts."""
    branch_deps: tuple[str, ...] = ()
    """Branches whose work this job must see, in merge order (rulings I1, I2)."""
    deps: tuple[Work, ...] = ()
    """The work of the legs it depends on, for the names in its repository (ruling O4)."""
    line: tuple[Work, ...] = ()
    """The work of its chain before it, in order of dispatch: it starts from all of that which merges (ruling O2)."""
    at_base: bool = False
    """True if the job starts from the base of its tree on purpose, and not from the line (ruling O2)."""
    merges: tuple[str, ...] = ()
    """Legs that are not on the line, whose merge is begun in its folder for it to resolve (ruling O6)."""
    own_branch: str = ""
    """The branch that the job continues, because an earlier job of its chain wrote there (ruling O5)."""
    shared_worktree: str | None = None
    leaf: bool = False
    """True for a leg at the depth cap: it may not delegate."""
    budget: BudgetLine | None = None
    """The tree's use of each bound when this run is offered, for a job that may delegate; a continuation has it in its
    brief.
    """
    goal: Text | None = None
    """The goal of the whole tree, for a leg; a continuation has it in its brief (ruling P3)."""
    follows: tuple[BriefLeg, ...] = ()
    """The legs on which the job depends, with their outcomes."""
    rules: tuple[SynthesisRule, ...] = ()
    """The rules for which the job's decision counts."""
    quorum: int | None = None
    require: tuple[str, ...] = ()
    prefer: tuple[str, ...] = ()
    """Labels that its tree's pipeline stage requires and prefers of its host (ruling Q4)."""
    read_only: bool = False
    """True if no job of its tree may implement (ruling N5)."""


class JobOutcome(Wire):
    """The end of an attempt. Small on purpose: the whole result is in the store under `result_digest`."""

    job_id: str
    attempt: int = 1
    state: JobState
    begun_at: float | None = None
    """The time when the host began the job; None if the host never did."""
    reason: str = ""
    moved: bool = False
    """True if the job's host was lost or is drained: the job is offered elsewhere (ruling Q5)."""
    decision: Decision | None = None
    summary: str = ""
    findings: str = ""
    """Rendered, redacted and capped, for quotes in a replan prompt."""
    delegations: tuple[Delegation, ...] = ()
    not_kept: int = 0
    """So many delegations the result had, more than one may have: none of them is here (ruling C1)."""
    human_questions: tuple[HumanQuestion, ...] = ()
    result_digest: str | None = None
    artifact_digest: str | None = None
    progress: str = ""
    """Digest of the verifiable side effects (ruling H3)."""
    usage: Usage = Usage()
    model: str | None = None
    """The model that was really used, if its program reports it; of several, the one with the most tokens."""
    priced: bool = False
    """True: so 0.2.0 prices the tokens of shell agents by their model, too (ruling K5)."""
    session: str | None = None
    branch: str | None = None
    head_sha: str | None = None
    pull_request: int | None = None
    touched_files: tuple[str, ...] = ()
    long_prompts: dict[str, LongPrompt] = {}
    """Prompts of delegations that were stored instead of sent, by leg."""
    conflict: str = ""
    """The legs and files of dependencies whose branches could not be merged. Blocks the batch whatever the policy."""
    first: str = ""
    """The command a person must type first; running it again at once would end no better (ruling B3)."""
    agents: tuple[Worker, ...] = ()
    """The agents routable on the repository; only if the result delegates (ruling C6)."""
    templates: tuple[str, ...] = ()
    """Registered agents whose template an ephemeral worker may name; only if the result delegates (ruling C6)."""
    notices: tuple[Notice, ...] = ()

    @property
    def delegation_count(self) -> int:
        """Return how many delegations the result had, kept or not."""
        return len(self.delegations) or self.not_kept
