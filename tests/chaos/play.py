"""One case, played: a tree is started, its fault strikes, a person answers what is asked, and the tree ends."""

import contextlib
import json
import threading
import time
from dataclasses import dataclass, field
from functools import partial

from sqlalchemy.exc import OperationalError

from activities.store import job_rows, run_rows
from bridge.operations.jobs import rounds
from tests.chaos.cases import Case
from tests.chaos.controller import Aim
from tests.chaos.faults.none import NoFault
from tests.chaos.protocol import Arrival, Fault, NotLandedError
from tests.chaos.stack import FIRST, Stack
from tests.chaos.workloads import WORKLOADS, Workload, plan_of
from tests.waiting import wait_for
from workflows.model.rounds import RoundKind
from workflows.model.states import JobState, TaskState
from workflows.pipeline.plan import OPEN_RUNS


@dataclass(frozen=True)
class Look:
    """What the page of a task showed at some time between two moments."""

    since: float
    until: float
    calm: bool
    """Whether the last fault was over for as long as a screen may be late."""
    jobs: dict[tuple[str, int], JobState]
    """The state of each job, by its id and attempt."""


MISSED = "the fault did not land"
BETWEEN_LOOKS = 2.0
QUIET = 60.0
"""Seconds after the end of all faults in which a tree must go on, or a screen say why it does not."""
LONGEST = 240.0
LATE = 30.0
"""Seconds after the end of a tree until its branch is merged, or its end is told."""
LOOKS = 1.0
SHOWN = 15.0
"""Seconds after an agent's begin, and after the end of all faults, in which each screen shows that it runs."""
RETRIES = 3
REFUSALS = 20
"""How often an order to run a job again may be refused, one after another, until a person gives up."""


@dataclass
class Play:
    """One case on a stack, and what came of it."""

    stack: Stack
    case: Case
    key: str
    workload: Workload = field(init=False)
    fault: Fault = field(init=False)
    aim: Aim = field(init=False)
    root: str = ""
    """The tree's root job, or the pipeline's run."""
    issue: int = 0
    """The number of its issue on GitHub."""
    struck_at: float = 0.0
    proof: str = ""
    failures: list[str] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)
    took: float = 0.0
    lifted: threading.Event = field(default_factory=threading.Event)
    """Set while no fault lasts."""
    _answered: set[str] = field(default_factory=set)
    _retried: int = 0
    _refused: int = 0
    _retried_at: int = -1
    """The revision of the task of which a person has ordered a retry that is not carried out yet."""
    _killed: bool = False
    _lost: bool = False
    _changed: float = 0.0
    _seen: object = None
    _last: object = None

    def __post_init__(self) -> None:
        self.workload, self.fault = WORKLOADS[self.case.workload], self.case.made()
        self.lifted.set()
        self.aim = Aim(self.case.station, self.case.nth, self._strike)
        folder = self.stack.plans / self.key
        folder.mkdir()
        for name, text in plan_of(self.workload, self.key).items():
            (folder / name).write_text(text)

    def run(self) -> None:
        """Play to the end of the tree and of the fault. What goes wrong stands in `failures`."""
        began = time.monotonic()
        try:
            self._start()
            self._to_the_end()
            with contextlib.suppress(AssertionError):  # some work comes after the end of a tree
                wait_for(lambda: self.aim.arrival or self.fault.name == NoFault.name, "", LATE)
            self.aim.over = True
        except Exception as error:
            self.failures.append(f"{type(error).__name__}: {error}")
        self.took = time.monotonic() - began

    def prove(self) -> None:
        """Have the fault prove that it struck."""
        try:
            if self.fault.name == NoFault.name:
                return
            if self.aim.arrival is None:
                raise NotLandedError(f"{self.case.station} was reached {self.aim.seen} times")
            self.proof = f"{self.aim.arrival.station} by {self.aim.arrival.pid}: {self.fault.proof(self.stack)}"
        except NotLandedError as error:
            self.failures.append(f"{MISSED}: {error}")

    def _strike(self, arrival: Arrival) -> str:
        self.struck_at = time.time()
        self.stack.trouble(self.fault.seconds)
        self.lifted.clear()
        threading.Timer(self.fault.seconds, self._lift).start()
        return self.fault.strike(self.stack, arrival)

    def _lift(self) -> None:
        try:
            self.fault.lift(self.stack)
        except Exception as error:
            self.failures.append(f"the fault does not end: {type(error).__name__}: {error}")
        self.stack.trouble()
        self.lifted.set()

    def _start(self) -> None:
        name, stages, agent = self.workload.name, self.workload.pipeline, self.workload.agent
        if self.workload.loses:
            self.stack.start()
            self.stack.service("host", "drain", FIRST)
        with self.stack.controller.expecting(self.aim):
            if stages:
                path = self.stack.folder / f"{self.key}.yaml"
                path.write_text(f"name: {self.key}\nrepo: acme/shop\nstages:\n{stages.replace('CASE', self.key)}")
                add = partial(self.stack.service.run, "pipeline", "add", str(path))
                wait_for(lambda: add().returncode == 0, lambda: add().stderr, QUIET)  # a fault of another case may last
                self.root = self.stack.post(f"/v1/pipelines/{self.key}/run", {}, self.key)["run_id"]
            else:
                body: dict[str, object] = {"message": f"reach {name} of {self.key}", "repo": self.workload.repo}
                if self.workload.issue:
                    self.issue = body["issue"] = self.stack.github.issue(self.key)
                self.root = self.stack.post(f"/v1/agents/{agent}/{self.workload.action}", body, self.key)["job_id"]
            self.stack.controller.owns(self.root, self.aim)

    def _to_the_end(self) -> None:
        began = self._changed = time.time()
        while not self._ends():
            now, seen = time.time(), self._last
            if seen is not None and seen != self._seen:
                self._seen, self._changed = seen, now
            quiet = now - max(self._changed, self.stack.troubled_until)
            if quiet > QUIET and self._state == self._seen and (silent := self._unexplained()):
                raise AssertionError(f"stalls in silence for {quiet:.0f} s: {silent}")
            if now - max(began, self.stack.troubled_until) > LONGEST:
                raise AssertionError(f"never ends, though its reason is told: {seen}")
            time.sleep(LOOKS)

    def _ends(self) -> bool:
        """Look once, and do what a person does; return whether the tree is over. A fault may keep us from looking."""
        with contextlib.suppress(OperationalError):
            if self.is_over:
                return True
            self._be_a_person()
            self._last = self._state
            if unseen := self._unseen(time.time()):
                raise AssertionError(f"agents run, and no screen says so: {unseen}")
        if not self.workload.pipeline and (not self.looks or time.time() > self.looks[-1].until + BETWEEN_LOOKS):
            self._look()
        return False

    def _look(self) -> None:
        """Keep what the task's page shows, to be compared with the marks of agents."""
        since = time.time()
        rows = (self.stack.shown(f"/v1/jobs/{self.root}/tree") or {"jobs": []})["jobs"]
        states = {(row["job_id"], row["attempt"]): JobState(row["state"]) for row in rows}
        self.looks.append(Look(since, time.time(), since > self.stack.troubled_until + QUIET, states))

    @property
    def is_over(self) -> bool:
        """True once nothing moves any more, and no person can move it on."""
        store = self.stack.service.seen.store
        if self.workload.pipeline:
            run = run_rows.get(store, self.root)
            return run is not None and run.record.state not in OPEN_RUNS
        task = job_rows.task_of(store, self.root)
        if task is None or any(not job.state.has_ended for job in job_rows.tree(store, self.root)):
            return False
        retried = self._retried >= RETRIES and task.revision != self._retried_at
        return task.state.has_ended or (task.state is TaskState.BLOCKED and retried)

    @property
    def _state(self) -> object:
        store = self.stack.service.seen.store
        if self.workload.pipeline:
            return [(stage.stage_id, stage.state, stage.attempt) for stage in run_rows.stages_of(store, self.root)]
        task = job_rows.task_of(store, self.root)
        return task and (task.revision, [(row.job_id, row.revision) for row in job_rows.tree(store, self.root)])

    def _be_a_person(self) -> None:
        if self.workload.pipeline:
            return
        service = self.stack.service.seen
        for row in rounds.open_of(service, self.root):
            if row.round_id not in self._answered:
                verb, text = self._decision(row.kind, row.number)
                body = {"verb": verb, "text": text, "round": row.number}
                if self.workload.by_form and verb == "answer":
                    self.stack.form(self.root, dict([text.split(": ")]) if ": " in text else {})
                else:
                    self.stack.post(f"/v1/jobs/{row.coordinator_id}/resume", body, f"{self.key}-{row.round_id}")
                self._answered.add(row.round_id)
        task = job_rows.task_of(service.store, self.root)
        if task and task.state is TaskState.BLOCKED and self._retried < RETRIES and task.revision != self._retried_at:
            if task.to_retry and "error" not in self.stack.post(f"/v1/jobs/{task.to_retry}/retry", {}, ""):
                self._retried += 1
                self._retried_at = task.revision
            else:  # perhaps the tree is just closing
                self._refused += 1
                self._retried = RETRIES if self._refused >= REFUSALS else self._retried
        if self.workload.kills and not self._killed and self._is_running(self.workload.kills):
            self.stack.post(f"/v1/jobs/{self.root}/kill", {"now": self.workload.at_once}, "")
            self._killed = True
            (self.stack.plans / self.key / "go").touch()
        if self.workload.loses:
            self._lose_a_host()

    def _lose_a_host(self) -> None:
        """Let the host die on which a leg runs, with another one there; let the leg end where it has moved to."""
        if not self._lost and self._is_running(self.workload.loses):
            self.stack.service("host", "drain", FIRST, "--undo")
            self.stack.crash_second()
            self._lost = True
        if self._lost and self._is_running(self.workload.loses, attempt=2):
            (self.stack.plans / self.key / "go").touch()

    def _decision(self, kind: RoundKind, number: int) -> tuple[str, str]:
        """Return what the workload's person says, or for a round that only a fault has opened: go on."""
        planned = self.workload.resumes[number - 1 : number]
        if planned and (planned[0][0] == "answer") == (kind is RoundKind.ASK):
            return planned[0]
        return ("answer", "go on") if kind is RoundKind.ASK else ("retry", "")

    def _is_running(self, name: str, attempt: int = 1) -> bool:
        rows = job_rows.tree(self.stack.service.seen.store, self.root)
        mine = [row for row in rows if row.delegation_id == name]
        return any(row.state is JobState.RUNNING and row.attempt >= attempt for row in mine)

    def _unseen(self, now: float) -> list[tuple[str, str]]:
        """Return the jobs whose agents run for a while, and are said not to."""
        if self.workload.pipeline or now - self.stack.troubled_until < SHOWN:
            return []
        mine = self.stack.marks_of(self.root)
        ended = {(mark.job, mark.pid) for mark in mine if mark.word == "end"}
        begun = [mark for mark in mine if (mark.job, mark.pid) not in ended and mark.at < now - SHOWN]
        runs = {(mark.job, mark.attempt) for mark in begun}
        rows = job_rows.tree(self.stack.service.seen.store, self.root)
        queued = [row for row in rows if row.state is JobState.QUEUED]
        return [(row.job_id, row.state.value) for row in queued if (row.job_id, row.attempt) in runs]

    def _unexplained(self) -> str:
        """Return what no screen explains of a tree that stands still; empty if some screen does."""
        attention = json.dumps(self.stack.service.json("attention"))
        if self.root in attention:
            return ""
        rows = [] if self.workload.pipeline else job_rows.tree(self.stack.service.seen.store, self.root)
        silent = [(row.job_id, row.state.value) for row in rows if not row.state.has_ended and not row.reason]
        return str(silent or ("" if rows else self._state))
