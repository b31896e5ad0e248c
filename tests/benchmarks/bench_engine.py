"""Speed of the reducer: `python -m tests.benchmarks.bench_engine`. Prints figures for people; asserts nothing."""

import time
from collections.abc import Callable

from tests.tree.generated import grow
from tests.tree.simulator import World, delegation, outcome, tree_input
from workflows.model.jobs import JobOutcome, JobRun
from workflows.model.settings import Bounds
from workflows.tree.events import Event, JobEnded
from workflows.tree.reducer import new_tree, reduce
from workflows.tree.state import TreeInput, TreeMemory


def wide() -> tuple[TreeInput, list[Event]]:
    """Return the input and events of a tree of 64 jobs: a root, 62 legs in three layers, a continuation."""
    start = tree_input(Bounds(max_delegation_width=62))
    legs = [delegation(f"l{n}", deps=(f"l{n % 20}",) if n >= 20 else ()) for n in range(62)]

    def script(run: JobRun) -> JobOutcome:
        return outcome(run, "approved", *(legs if run.parent_job_id is None else ()))

    world = World(start).begin()
    while not world.state.closed:
        run = next(iter(world.flying.values()))
        world.feed(JobEnded(now=world.now + 1, outcome=script(run)))
    assert len(world.state.jobs) == 64
    return start, [event for event, _ in world.history]


def replay(start: TreeInput, events: list[Event]) -> TreeMemory:
    state = new_tree(start)
    for event in events:
        reduce(state, event)
    return state


def best(what: Callable[[], object], times: int = 7) -> float:
    """Return the shortest of several runs, in seconds of CPU time."""
    taken = []
    for _ in range(times):
        began = time.process_time()
        what()
        taken.append(time.process_time() - began)
    return min(taken)


def main() -> None:
    start, events = wide()
    seconds = best(lambda: replay(start, events))
    state = replay(start, events)
    text = state.model_dump_json()
    print(f"64-job tree: {seconds * 1000:.2f} ms, {len(events)} steps, {len(events) / seconds:,.0f} steps/s")
    print(f"state: {len(text):,} bytes; dump {best(state.model_dump_json) * 1000:.2f} ms, ", end="")
    print(f"restore {best(lambda: TreeMemory.model_validate_json(text)) * 1000:.2f} ms")
    trees = [bytes((n * k * 31 + k) % 256 for k in range(300)) for n in range(1, 500)]
    taken = best(lambda: [grow(data) for data in trees], 3)
    print(f"generated and checked trees: {len(trees) / taken:,.0f} per second")


if __name__ == "__main__":
    main()
