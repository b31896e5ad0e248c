"""Every order of claim, report, take-back, question, answer, block, finalize, kill, move and end, with the workflows,
the reducer and the store of the product: nothing is stopped without a reason, nothing taken back runs (G2.stops).
"""

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from activities.settings.home import Home
from tests.activities.store.stepwise import Stage, Step
from tests.depth import THOROUGH, cases
from tests.tree.simulator import delegation, outcome, tree_input
from workflows.contract.models import HumanQuestion
from workflows.model import ids
from workflows.model.jobs import JobOutcome, JobRun
from workflows.model.settings import Bounds
from workflows.model.spend import Usage
from workflows.model.states import JobState, TaskState

pytestmark = pytest.mark.ruling("G2.stops", "B5", "F2", "F3", "F8", "Q5.claim")
ASKS = (HumanQuestion(id="q", prompt="which?"),)
ANSWER = "the red one"
ENDS = ("well", "ask", "block", "finalize", "abort")
"""How `a` ends: well, with a question, blocking its tree, using up the budget, or in a round that a person aborts."""
ORDERS = ("kill", "kill now", "move")
LATEST = cases(6, 24)
"""The number of steps after the end of `a` among which the other leg's begin and report are placed."""
APART = 1 if THOROUGH else 3
_NUMBERS = itertools.count()


@dataclass
class Course:
    """What happens to a tree of a leg `a`, a leg `b` beside it, and a leg `c` after it."""

    trouble: frozenset[str]
    """How `a` ends, and the orders that come meanwhile."""
    asked: set[str] = field(default_factory=set)
    """What people have done so far."""

    def answer(self, run: JobRun) -> JobOutcome:
        """Return how an attempt ends if nobody stops it."""
        first = run.parent_job_id is None
        if first:
            policy = "escalate_human" if "abort" in self.trouble else None
            legs = (delegation("a", failure_policy=policy), delegation("b"), delegation("c", deps=("a",)))
            return outcome(run, "approved", *legs)
        if run.delegation_id != "a" or run.attempt > 1:
            return outcome(run, progress=run.job_id)
        if "ask" in self.trouble:
            return outcome(run, human_questions=ASKS)
        if "block" in self.trouble or "abort" in self.trouble:
            return outcome(run, None)
        return outcome(run, usage=Usage(input_tokens=5000 if "finalize" in self.trouble else 0))

    def stage(self, store: Engine, home: Home) -> Stage:
        now = time.time()
        root = ids.root_id(int(now * 1000), next(_NUMBERS))
        bounds = Bounds(max_delegation_token_budget=1000)
        start = tree_input(bounds, root_job_id=root, task_id=ids.task_id(root), created_at=now)
        return Stage(store, home, start, self.answer)

    def people(self, stage: Stage) -> dict[str, Step]:
        """Return what people, or a lost host, may do next; each of it happens once."""
        steps: dict[str, Step] = {}
        if stage.paused:
            verb, text = ("answer", ANSWER) if "ask" in self.trouble else ("abort", "")
            steps["resume"] = lambda: stage.resume(verb, text)
        if "kill now" in self.trouble:
            steps["kill now"] = lambda: stage.kill(immediate=True)
        if "kill" in self.trouble:
            steps["kill"] = lambda: stage.kill(immediate=False)
        if "move" in self.trouble and (here := [call for call in stage.at_host if call.run.delegation_id == "b"]):
            steps["move"] = lambda: stage.move(here[0])
        return {name: self._once(name, step) for name, step in steps.items() if name not in self.asked}

    def _once(self, name: str, step: Step) -> Step:
        def taken() -> None:
            self.asked.add(name)
            step()

        return taken

    def check(self, stage: Stage) -> None:
        """Check what has become of the tree, and of the answer."""
        state, killed = stage.task.state, "delegation_killed" in stage.events
        if killed:
            assert state is TaskState.CANCELLED
        elif "block" in self.trouble:
            assert state is TaskState.BLOCKED
        else:
            assert state is TaskState.DONE, stage.task.reason
        if "resume_accepted" in stage.events and "ask" in self.trouble and not killed:
            briefs = [run.brief.model_dump_json() for run in stage.runs if run.brief is not None]
            assert any(ANSWER in brief for brief in briefs), "an answer is not lost"
        if not killed and "ask" in self.trouble:
            assert "resume_accepted" in stage.events, "a round waits for its answer"
        b = f"{stage.start.root_job_id}.2"
        if b in {run.job_id for run in stage.runs} - stage.moved and not stage.killed_at_once:
            assert stage.ended[b].state is JobState.SUCCEEDED, "what runs, runs on"


def late(stage: Stage, when: dict[str, int]) -> Callable[[list[str]], str]:
    """Choose like a quiet machine, but hold these steps back until so many others were taken since `a` ended."""
    root, since = stage.start.root_job_id, [0]
    held = {name.replace(" b", f" {root}.2, attempt 1"): at for name, at in when.items()}

    def choose(possible: list[str]) -> str:
        since[0] += any(name.startswith(f"end {root}.1,") for name in stage.log)
        due = [name for name in possible if name in held and held[name] <= since[0]]
        free = [name for name in possible if name not in held and not name.startswith(f"end {root}.2,")]
        return (due or free or [name for name in possible if name in held] or possible)[0]

    return choose


def play(course: Course, stage: Stage, choose: Callable[[list[str]], str]) -> None:
    try:
        stage.play(lambda: course.people(stage), choose)
        course.check(stage)
    except AssertionError as error:
        error.add_note(", ".join(sorted(course.trouble)) + "\n" + "\n".join(stage.log))
        raise


def orders(order: str, apart: int) -> Iterator[dict[str, int]]:
    """Place the begin of `b`, its report, and an order, at all distances from each other."""
    for begin in range(0, LATEST, apart):
        for report in range(begin, LATEST + 1, apart):
            for moment in range(0, LATEST, apart) if order else (0,):
                yield {"begin b": begin, "report b": report} | ({order: moment} if order else {})


@pytest.mark.parametrize(("end", "order"), [*((end, "") for end in ENDS), *(("ask", order) for order in ORDERS)])
def test_the_begin_and_the_report_of_a_leg_at_every_moment_of_what_befalls_its_tree(
    store: Engine, home: Home, end: str, order: str
) -> None:
    apart = APART if order or store.dialect.name != "sqlite" else 1 if end == "ask" else min(APART, 2)
    for when in orders(order, apart):
        course = Course(frozenset({end, order} - {""}))
        stage = course.stage(store, home)
        play(course, stage, late(stage, when))


@settings(max_examples=cases(30, 2_000), deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(
    end=st.sampled_from(ENDS),
    ordered=st.sets(st.sampled_from(ORDERS), max_size=2),
    data=st.binary(max_size=150),
)
def test_any_order_of_all_steps(store: Engine, home: Home, end: str, ordered: set[str], data: bytes) -> None:
    course, picks = Course(frozenset({end, *ordered})), iter(data)
    stage = course.stage(store, home)
    play(course, stage, lambda possible: possible[next(picks, 0) % len(possible)])
