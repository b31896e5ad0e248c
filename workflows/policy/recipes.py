"""The built-in recipes: legs made from a goal without a model (spec: `service orchestrate`).

Equal goals, runtimes and counts give equal legs. Workers are ephemeral. A verify leg runs on another runtime than the
producers it checks, if there is one.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType

from workflows.contract.models import (
    Action,
    AutonomyPolicy,
    Delegation,
    Ephemeral,
    FailurePolicy,
    Runtime,
    SynthesisRule,
)
from workflows.model.errors import UsageError
from workflows.text.quoted_data import Fences, write_fenced


class Recipe(StrEnum):
    """The recipes of `service orchestrate`."""

    REVIEW_PANEL = "review-panel"
    DECOMPOSE_AND_VERIFY = "decompose-and-verify"
    VERIFIER = "verifier"


LENSES = (
    ("correctness", "Does it do what it should? Look for wrong results, edge cases, races and lost errors."),
    ("security", "Can it be misused? Look for injection, leaked secrets, missing checks and unsafe defaults."),
    ("tests", "Is it proven? Look for behaviour without a test, tests that cannot fail, and missing failure cases."),
    ("simplicity", "Could it be less? Look for needless parts, unclear names, duplication and surprising structure."),
    ("performance", "Will it hold under load? Look for needless work, unbounded growth and slow paths."),
    ("operations", "Can it be run? Look for missing logs, unclear errors, hard upgrades and unsafe migrations."),
)
SLICES = (
    ("code", "the production code, without its tests and documentation"),
    ("tests", "the automated tests, against the behaviour the goal describes"),
    ("docs", "the documentation, examples and change notes"),
    ("setup", "configuration, packaging and migrations"),
)

_VERIFY = """\
Check independently whether this goal has been reached; the producers' work is in your working folder.

{goal}

Run the build and the tests yourself; believe nothing you have not seen. Your working folder is a scratch copy of that
work, for you alone: build and run in it, and let tools write there or into $TMPDIR. It is thrown away afterwards, so
repair nothing, do not commit, and leave every branch as it is. What the build needs from the network may be out
of reach: say so. Return `changes_requested` with one structured finding per objective failure (title, severity, what
you ran, what came out), otherwise `approved`."""


_OBEYED = "The exception is the goal: it says what your task is."


def expand(
    recipe: Recipe,
    goal: str,
    runtimes: Sequence[str],
    count: int | None = None,
    builds: Mapping[str, AutonomyPolicy] = MappingProxyType({}),
) -> tuple[Delegation, ...]:
    """Return the recipe's legs for `TreeInput.legs`; `builds` has the policy with which each runtime can run a
    build.
    """
    check = _other(runtimes) if runtimes else ""
    policy = builds.get(check, AutonomyPolicy.READ_ONLY)
    if not runtimes:
        raise UsageError("a recipe needs a configured runtime, and there is none", "service config show")
    match recipe:
        case Recipe.REVIEW_PANEL:
            return _each(LENSES, 3, count, lambda index, lens: _reviewer(goal, runtimes[index % len(runtimes)], lens))
        case Recipe.DECOMPOSE_AND_VERIFY:
            slices = _each(SLICES, 2, count, lambda _, part: _producer(goal, runtimes[0], part))
            return (*slices, _verifier(goal, check, policy, slices))
        case Recipe.VERIFIER:
            if count is not None:
                raise UsageError("the recipe verifier has one producer: leave `legs` out", "service orchestrate --help")
            producer = _producer(goal, runtimes[0], None)
            return (producer, _verifier(goal, check, policy, (producer,)))


def caveat(recipe: Recipe, runtimes: Sequence[str]) -> str:
    """Return the caveat of the result if the producers' own runtime checks their work: that is not independent. Empty
    otherwise.
    """
    if recipe is Recipe.REVIEW_PANEL or not runtimes or _other(runtimes) != runtimes[0]:
        return ""
    return f"the check is not independent: {runtimes[0]} does the work and checks it too"


def _about(instructions: str, goal: str) -> str:
    """Insert the goal into the instructions, as a fenced block under the name of the task's starter, whose instructions
    the job follows (ruling P7).
    """

    def write(fences: Fences) -> str:
        quoted = fences.block(goal, "who started this task")
        return f"{fences.meaning(obeyed=_OBEYED)}\n\n{instructions.replace('{goal}', quoted)}"

    return write_fenced(goal, write)


def _each(
    table: Sequence[tuple[str, str]], default: int, count: int | None, leg: Callable[[int, tuple[str, str]], Delegation]
) -> tuple[Delegation, ...]:
    wanted = default if count is None else count
    if not 1 <= wanted <= len(table):
        raise UsageError(f"this recipe has 1 to {len(table)} legs, not {wanted}", "service orchestrate --help")
    return tuple(leg(index, row) for index, row in enumerate(table[:wanted]))


def _other(runtimes: Sequence[str]) -> str:
    return next((each for each in runtimes if each != runtimes[0]), runtimes[0])


def _reviewer(goal: str, runtime: str, lens: tuple[str, str]) -> Delegation:
    """Return a leg that reviews with one lens; its failure does not end the panel."""
    name, question = lens
    return Delegation(
        id=f"review-{name}",
        ephemeral=Ephemeral(runtime=Runtime(runtime), role=f"{name} reviewer", capabilities=("review",)),
        action=Action.REVIEW,
        prompt=_about(f"Review with one lens only: {name}. {question}\n\nWhat to review:\n\n{{goal}}", goal),
        failure_policy=FailurePolicy.CONTINUE,
        synthesis_rule=SynthesisRule.SUMMARY,
        phase="review",
    )


def _producer(goal: str, runtime: str, part: tuple[str, str] | None) -> Delegation:
    name, what = part or ("goal", "")
    only = f"Others work on the rest at the same time. Your part, and nothing else: {what}.\n\n" if part else ""
    return Delegation(
        id=f"implement-{name}",
        ephemeral=Ephemeral(
            runtime=Runtime(runtime),
            role=f"{name} producer",
            capabilities=("implement",),
            autonomy_policy=AutonomyPolicy.DANGER_FULL_ACCESS,
        ),
        action=Action.IMPLEMENT,
        prompt=_about(f"{only}Implement this goal:\n\n{{goal}}", goal),
        phase="implement",
    )


def _verifier(goal: str, runtime: str, policy: AutonomyPolicy, producers: Sequence[Delegation]) -> Delegation:
    """Return the verify leg. As a review it works in a throwaway worktree without a branch, and never commits (ruling
    I2).
    """
    return Delegation(
        id="verify",
        ephemeral=Ephemeral(
            runtime=Runtime(runtime), role="verifier", capabilities=("review",), autonomy_policy=policy
        ),
        action=Action.REVIEW,
        prompt=_about(_VERIFY, goal),
        deps=tuple(each.id for each in producers),
        synthesis_rule=SynthesisRule.VERIFY,
        phase="gate",
    )
