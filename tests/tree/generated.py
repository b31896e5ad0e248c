"""Trees generated from a string of bytes: every choice is the next byte; without any, it is the simplest choice."""

from tests.tree.simulator import CODER, World, delegation, outcome, tree_input
from workflows.contract.models import Delegation, HumanQuestion
from workflows.model.jobs import JobOutcome, JobRun
from workflows.model.orders import ResumeOrder
from workflows.model.settings import Bounds
from workflows.model.spend import Usage
from workflows.model.states import JobState, TaskState
from workflows.tree.events import JobEnded, KillRequested, ResumeRequested, RetryRequested, TimerFired
from workflows.tree.resume import refuse_resume
from workflows.tree.state import TreeMemory

POLICIES = (None, None, "continue", "block_parent", "escalate", "escalate_human")
RULES = (None, None, None, "vote", "quorum", "verify", "summary")
DECISIONS = (
    "approved",
    "implemented",
    "approved",
    "implemented",
    "changes_requested",
    "skipped",
    "blocked",
    "failed",
    None,
)


class Choices:
    """A reader of bytes."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0
        self.previous: tuple[Delegation, ...] = ()

    def pick(self, count: int) -> int:
        """Return a number below `count`; 0 when the bytes are used up."""
        if self.at >= len(self.data):
            return 0
        self.at += 1
        return self.data[self.at - 1] % count

    def rare(self, of: int) -> bool:
        return self.pick(of) == of - 1


def bounds(choices: Choices) -> Bounds:
    return Bounds(
        max_delegation_depth=(8, 1, 2, 3)[choices.pick(4)],
        max_delegation_total_jobs=(64, 5, 12, 64)[choices.pick(4)],
        max_delegation_token_budget=(0, 0, 500, 2000)[choices.pick(4)],
        max_delegation_cost_usd=(0, 0, 0.001)[choices.pick(3)],
        max_delegation_wall_clock_seconds=(7200, 7200, 40)[choices.pick(3)],
        max_delegation_width=(16, 3, 16)[choices.pick(3)],
        max_verify_replan_attempts=(2, 0, 1)[choices.pick(3)],
        max_delegation_non_progress_streak=(2, 1)[choices.pick(2)],
    )


def legs(choices: Choices) -> tuple[Delegation, ...]:
    """Return a new set, or the previous one, which makes a coordinator loop."""
    if choices.pick(4) != 3 or not choices.previous:
        choices.previous = tuple(_leg(choices, index) for index in range(choices.pick(6)))
    return choices.previous


def _leg(choices: Choices, index: int) -> Delegation:
    rule = RULES[choices.pick(len(RULES))]
    look = choices.pick(24)
    fields: dict[str, object] = {
        "deps": tuple(f"l{other}" for other in range(index) if choices.pick(3) == 1),
        "failure_policy": POLICIES[choices.pick(len(POLICIES))],
        "synthesis_rule": rule,
        "quorum": 1 + choices.pick(2) if rule == "quorum" else None,
        "retry": (0, 0, 1, 2)[choices.pick(4)],
        "fingerprint": (None, None, None, "same")[choices.pick(4)],
        "worktree": (None, None, "@base", "shared")[choices.pick(4)],
        "ephemeral": look in range(1, 7),
    }
    agent = {23: "ghost", 22: "reader"}.get(look, CODER.name)
    return delegation(f"l{index}", agent, ("implement", "review", "ask")[choices.pick(3)], **fields)


def ending(choices: Choices, run: JobRun) -> JobOutcome:
    first = run.parent_job_id is None
    decision = DECISIONS[choices.pick(2 if first else len(DECISIONS))]
    grown = choices.pick(4) if run.delegation_id is not None else choices.pick(3)
    more = legs(choices) if first or grown % 4 in {1, 2} else ()
    fields: dict[str, object] = {
        "usage": Usage(input_tokens=choices.pick(100), output_tokens=choices.pick(50)),
        "progress": str(choices.pick(3)),
        "branch": f"service/{run.job_id}",
        "head_sha": f"{run.job_id}-{run.attempt}",
    }
    if choices.pick(8) == 7:
        names = ("q", "why", "l0.q")[: 1 + choices.pick(3)]
        fields["human_questions"] = tuple(HumanQuestion(id=each, prompt=f"which {each}?") for each in names)
    if choices.rare(40):
        fields["conflict"] = "a and b both change x.py"
    if choices.rare(12):
        fields["state"] = JobState.CANCELLED
    return outcome(run, decision, *more, **fields)


def grow(data: bytes, limit: int = 400) -> World:
    """Play a generated tree to its end, with kills, retries, stale outcomes and a restart in between."""
    choices = Choices(data)
    start, places = tree_input(bounds(choices)), (0, 1, 2, 4)[choices.pick(4)]
    world = World(start, patient=places > 0).begin()
    again = 3
    while limit:
        limit -= 1
        if world.state.closed:
            if not again or not _retry_something(choices, world):
                return world
            again -= 1
            continue
        _step(choices, world, places)
        if choices.rare(25):
            world.state = TreeMemory.model_validate_json(world.state.model_dump_json())
    raise AssertionError("the task does not end")


def _host(choices: Choices, world: World, places: int) -> bool:
    """Simulate a host with few slots, some taken by other trees: it begins jobs if it can, and returns wanted ones."""
    free = places - len(world.flying) - choices.pick(2)
    idle = not (world.flying or world.timers or world.open())
    if world.asked_back and (free <= 0 or not choices.rare(4)):
        world.give_back(_some(choices, sorted(world.asked_back)))
    elif world.offered and (free > 0 or idle):
        world.begins(_some(choices, list(world.offered)), reported=not choices.rare(4))
    else:
        return False
    return True


def _step(choices: Choices, world: World, places: int) -> None:
    if world.offered and (choices.pick(2) or not world.flying) and _host(choices, world, places):
        return
    if choices.rare(60):
        world.feed(KillRequested(now=world.now, actor="ann", immediate=choices.pick(2) == 1))
        return
    if choices.rare(30):
        world.feed(RetryRequested(now=world.now, actor="ann", job_id=_some(choices, list(world.state.jobs))))
        return
    if world.open() and (choices.pick(3) == 1 or not world.flying):
        _person(choices, world)
        return
    if world.timers and (not world.flying or choices.pick(2)):
        _fire(choices, world)
        return
    if not world.flying:
        _host(choices, world, places)
        return
    run = world.flying[_some(choices, list(world.flying))]
    outcome = ending(choices, run).model_copy(update={"begun_at": world.now})
    if outcome.state is JobState.CANCELLED and choices.pick(2):
        world.move(_some(choices, [run.job_id, *world.offered]))
        return
    ended = JobEnded(now=world.now + choices.pick(10), outcome=outcome)
    world.feed(ended)
    if choices.rare(10):
        assert world.feed(ended) == [], "an outcome counts once"


def _fire(choices: Choices, world: World) -> None:
    key = _some(choices, list(world.timers))
    del world.timers[key]
    world.feed(TimerFired(now=world.now + 1, key=key))


def _person(choices: Choices, world: World) -> None:
    """Send the right verb mostly; sometimes another verb, round or job, an equal request, or a late one."""
    opened = world.open()[choices.pick(len(world.open()))]
    verb = _some(
        choices, list(opened.verbs) if not choices.rare(4) else ["answer", "retry", "continue", "abort", "nap"]
    )
    text = {"extend": "2h", "answer": "q: yes\nwhy: no\nzz: x"}.get(verb, "with care") if not choices.rare(6) else ""
    order = ResumeOrder(
        actor="ann",
        channel="cli",
        job_id=opened.coordinator_id if not choices.rare(6) else _some(choices, list(world.state.jobs)),
        verb=verb,
        text=text,
        round=(None, opened.number, opened.number, choices.pick(4))[choices.pick(4)],
        digest=(opened.digest, "", opened.digest[:8], "0" * 64)[choices.pick(4) if choices.rare(3) else 0],
        request_id=f"r{len(world.history)}",
    )
    request = ResumeRequested(now=world.now + choices.pick(2) * 3_000, order=order)
    refusal = refuse_resume(world.state, request)
    before = len(world.events)
    world.feed(request)
    kinds = [each.kind for each in world.events[before:]]
    assert ("resume_refused" in kinds, "resume_accepted" in kinds) == (refusal is not None, refusal is None)
    if refusal is not None:
        _fire(choices, world)
    else:
        assert world.feed(request) == [], "the same request acts once"
    if refusal is None and verb != "extend":
        assert world.rounds[opened.round_id].end or order.job_id != opened.coordinator_id
        again = order.model_copy(update={"request_id": "", "round": opened.number, "digest": ""})
        late = request.model_copy(update={"order": again})
        why = refuse_resume(world.state, late)
        assert order.job_id != opened.coordinator_id or why is not None, "the first one wins"


def _retry_something(choices: Choices, world: World) -> bool:
    job_id = _some(choices, list(world.state.jobs))
    if not choices.pick(3):
        return False
    if choices.rare(10):
        _dismiss(world)
        return False
    world.feed(RetryRequested(now=world.now + 10_000, actor="ann", job_id=job_id))
    return True


def _dismiss(world: World) -> None:
    """Kill an ended tree, which ends a blocked task without a run, and changes nothing else."""
    before, runs = world.task_state(), len(world.runs)
    commands = world.feed(KillRequested(now=world.now + 10_000, actor="ann"))
    assert bool(commands) == (before is TaskState.BLOCKED)
    assert world.task_state() is (TaskState.CANCELLED if before is TaskState.BLOCKED else before)
    assert (len(world.runs), world.state.closed) == (runs, True)


def _some(choices: Choices, things: list[str]) -> str:
    return things[choices.pick(len(things))]
