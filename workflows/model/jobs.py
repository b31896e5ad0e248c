"""The request for an attempt, sent to its host, and the outcome that the host reports.

Wire format: a new field needs a default, unknown fields are ignored, and large values travel by digest.
"""

from workflows.contract.models import Decision, Delegation, HumanQuestion, Notice, SynthesisRule
from workflows.model.briefs import BriefLeg, BudgetLine, ContinuationBrief
from workflows.model.long_texts import LongPrompt, Text
from workflows.model.spend import Usage
from workflows.model.states import Continuation, JobState
from workflows.model.wire import Wire
from workflows.model.workers import Assignment, Worker


class Work(Wire):
    """A branch that a job of a chain left, and the leg that wrote it; without a leg, the coordinator's own job wrote
    it.
    """

    leg: str = ""
    job_id: str = ""
    branch: str
    head: str = ""
    """The job's last commit; empty if only the branch is known."""


class JobRun(Wire):
    """One attempt of one job: everything that its host needs to know."""

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
    """For a leg: how its previous attempt ended (ruling P3)."""
    moved_from: int = 0
    """The attempt that a lost host had begun; this attempt continues from that one's last snapshot (ruling Q5)."""
    guidance: tuple[str, ...] = ()
    """What people wrote for this attempt: instructions of a retry, answers to the leg's own questions (ruling F3)."""
    artifacts: tuple[str, ...] = ()
    artifact_digest: str | None = None
    """The digest of the delegating result's `artifact_body`, for a leg that names artifacts."""
    branch_deps: tuple[str, ...] = ()
    """Branches whose work this job must see, in merge order (rulings I1, I2)."""
    deps: tuple[Work, ...] = ()
    """The work of the legs that the job depends on, so that its repository can name the commits (ruling O4)."""
    line: tuple[Work, ...] = ()
    """The line: earlier work of the job's chain, in order of dispatch. The job starts from all of it that merges
    (ruling O2).
    """
    at_base: bool = False
    """True if the job starts from the base of its tree on purpose, and not from the line (ruling O2)."""
    merges: tuple[str, ...] = ()
    """Legs that are not on the line: their merge is begun in the job's folder, and the job resolves it (ruling O6)."""
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
    """The synthesis rules that the job's decision counts for."""
    quorum: int | None = None
    require: tuple[str, ...] = ()
    prefer: tuple[str, ...] = ()
    """Labels that the pipeline stage of the tree requires or prefers of the job's host (ruling Q4)."""
    read_only: bool = False
    """True if no job of its tree may implement (ruling N5)."""

    @property
    def bounds_left(self) -> BudgetLine | None:
        """The tree's use of each bound when this run is offered."""
        return self.brief.budget if self.brief else self.budget

    @property
    def may_delegate(self) -> bool:
        """Whether delegations of this run's result are run."""
        at_the_cap = self.leaf or (self.brief is not None and self.brief.budget.depth >= self.brief.budget.depth_cap)
        return not (at_the_cap or self.continuation is Continuation.FINALIZE or self.assignment.worker.ephemeral)


class JobOutcome(Wire):
    """The end of an attempt. It is kept small: the whole result is in the store under `result_digest`."""

    job_id: str
    attempt: int = 1
    state: JobState
    begun_at: float | None = None
    """The time when the host began the job; None if it never began."""
    reason: str = ""
    moved: bool = False
    """True if the job's host was lost or is drained: the job is offered to another host (ruling Q5)."""
    decision: Decision | None = None
    summary: str = ""
    findings: str = ""
    """The findings as text, redacted and cut, to quote in a replan prompt."""
    delegations: tuple[Delegation, ...] = ()
    not_kept: int = 0
    """The number of delegations in a result that had too many: none of them is here (ruling C1). 0 for all others."""
    human_questions: tuple[HumanQuestion, ...] = ()
    result_digest: str | None = None
    artifact_digest: str | None = None
    progress: str = ""
    """Digest of the job's verifiable side effects (ruling H3)."""
    usage: Usage = Usage()
    model: str | None = None
    """The model that the program really used, if it reports that; of several, the one with the most tokens."""
    priced: bool = False
    """True in outcomes of this release, so that 0.2.0 prices the tokens of shell agents by their model too (ruling
    K5).
    """
    estimated: bool = False
    """True if the usage is an estimate: its price is one, too (rulings K5, S7)."""
    session: str | None = None
    branch: str | None = None
    head_sha: str | None = None
    pull_request: int | None = None
    touched_files: tuple[str, ...] = ()
    long_prompts: dict[str, LongPrompt] = {}
    """Prompts of delegations that were stored instead of sent, by leg."""
    conflict: str = ""
    """The legs and files of dependencies whose branches could not be merged. A conflict blocks the batch whatever its
    failure policies say.
    """
    first: str = ""
    """The command that a person must type before a retry; without it, the retry would fail too (ruling B3)."""
    agents: tuple[Worker, ...] = ()
    """The agents that may be delegated to on the repository; only if the result delegates (ruling C6)."""
    templates: tuple[str, ...] = ()
    """Registered agents whose template an ephemeral worker may use; only if the result delegates (ruling C6)."""
    notices: tuple[Notice, ...] = ()

    @property
    def delegation_count(self) -> int:
        """Return how many delegations the result had, kept or not."""
        return len(self.delegations) or self.not_kept
