"""The questions of `service init`, all asked before it changes anything."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING

import typer

from cli.drawing.output import ask_text, ask_yes_or_no, tell, tell_error

if TYPE_CHECKING:
    from bridge.operations.health.runtimes import RuntimeStatus
    from bridge.operations.registry.init import Checkout, InitPlan, Programs
    from bridge.operations.service import Service


@dataclass(frozen=True)
class InitAnswers:
    """Answers given on the command line; other questions are asked, or with `--yes` answered by their defaults."""

    yes: bool
    name: str | None
    builder: str | None
    checker: str | None
    start: bool | None
    check: bool | None
    without_box: bool | None = None

    def agree(self, question: str, given: bool | None = None) -> bool:
        """Return the given answer; without one, ask for yes or no."""
        if given is not None or self.yes:
            return given is not False
        _require_terminal()
        return ask_yes_or_no(question, default=True)


@dataclass(frozen=True)
class Decisions:
    """What the person decided in `service init`."""

    plan: "InitPlan"
    start: bool
    check: bool
    unboxed: tuple[str, ...] = ()
    """Runtimes whose agents run without a box, because this machine has no box that can confine them."""


def decide(
    service: "Service",
    checkout: "Checkout",
    usable: "Sequence[RuntimeStatus]",
    lacks: "Sequence[str]",
    answers: InitAnswers,
) -> Decisions:
    """Ask all questions in turn, and change nothing. `lacks` is what the Temporal server lacks."""
    from bridge.operations.registry import init

    github = f", on GitHub {checkout.github}" if checkout.github else ""
    tell(f"repository: {checkout.top}{github}", *(f"program: {_program(runtime)}" for runtime in usable))
    name = _name(service, checkout, answers)
    plan = init.plan(service, checkout, name, _programs(service, checkout, name, usable, answers))
    if (plan.changes or lacks) and not answers.yes:
        if lacks:
            tell("the Temporal server would be made ready, as by service cluster init:", *(f"  {one}" for one in lacks))
        boxed = ", each agent in a box" if init.is_boxed(service, plan) else ""
        tell(f"this would be registered{boxed}:", *(f"  {line}" for line in in_words(service, plan)))
        if not answers.agree("do it?" if lacks else "register it?"):
            tell("nothing was changed")
            raise typer.Exit(1)
    unboxed = _agree_to_no_box(service, plan, answers)
    runs = init.runs(service)
    start = not runs and answers.agree("the daemon does not run; start it?", answers.start)
    works = (runs or start) and init.may_be_tried(service, plan, usable, unboxed)
    if answers.check and not works:
        tell("no job is tried: for that the daemon has to run, and the program of lead to be logged in")
    offered = works and (plan.changes or answers.check is not None)
    costs = "try it with one tiny job? its tokens are paid by the account that is logged in"
    return Decisions(plan, start, offered and answers.agree(costs, answers.check), unboxed)


def _agree_to_no_box(service: "Service", plan: "InitPlan", answers: InitAnswers) -> tuple[str, ...]:
    """Report runtimes whose agents no box can confine, with the remedy. They run only if a person agrees; `--yes` does
    not.
    """
    from bridge.operations.registry import init

    unheld = init.unheld(service, plan)
    if not unheld:
        return ()
    for why in unheld.values():
        tell_error(why)
    if answers.without_box is None and not answers.yes:
        _require_terminal()
        return tuple(unheld) if ask_yes_or_no("run them all the same, without a box?", default=False) else ()
    return tuple(unheld) if answers.without_box else ()


def _name(service: "Service", checkout: "Checkout", answers: InitAnswers) -> str:
    """Return the repository's name, asking until a valid one is given."""
    from bridge.operations.registry import init
    from workflows.model.errors import ServiceError

    if answers.name is not None or answers.yes or checkout.known:
        return answers.name if answers.name is not None else checkout.name
    _require_terminal()
    while True:
        name = ask_text(f"its name here, OWNER/NAME [{checkout.name}]", checkout.name)
        try:
            init.check_name(service, checkout, name)
        except ServiceError as error:
            tell_error(error)
        else:
            return name


def _programs(
    service: "Service", checkout: "Checkout", name: str, usable: "Sequence[RuntimeStatus]", answers: InitAnswers
) -> "Programs":
    """Choose the team's runtimes; ask if there is a choice and an agent to register."""
    from bridge.operations.registry import init

    chosen = init.choose(usable, answers.builder, answers.checker)
    named = answers.yes or answers.builder is not None or answers.checker is not None
    plan = init.plan(service, checkout, name, chosen)
    if named or len(usable) < 2 or not any(each.standing is init.Standing.NEW for each in plan.members):
        return chosen
    _require_terminal()
    names = {each.program: each.name for each in usable} | {each.name: each.name for each in usable}
    first = next(each.program for each in usable if each.name == chosen.builder)
    while True:
        typed = ask_text(
            f"which program plans and builds ({', '.join(each.program for each in usable)}) [{first}]", first
        )
        if typed in names:
            return init.choose(usable, names[typed])


def _require_terminal() -> None:
    if sys.stdin is None or not sys.stdin.isatty():
        from workflows.model.errors import Commands, UsageError

        why = "this asks questions, and there is no terminal to answer them on; nothing was changed"
        raise UsageError(why, Commands("service init --yes", "service init --yes --no-check"))


def in_words(service: "Service", plan: "InitPlan") -> list[str]:
    """Return a line for the repository and one for each agent: what the plan does with it."""
    from bridge.operations.registry.init import Standing

    lines = [*_repository(plan)]
    for member in plan.members:
        new, program = member.new, service.settings.program_name(member.runtime)
        if member.standing is Standing.OTHER:
            allow = f"service agent allow {new.name} {plan.repo}"
            lines.append(f"{new.name}: left alone, it is another agent; to let it work here: {allow}")
        elif member.standing is Standing.THERE:
            lines.append(f"{new.name}: {member.standing} ({program})")
        else:
            lines.append(f"{new.name}: {member.standing} ({program}: {new.capabilities}; {new.autonomy})")
    return lines


def _repository(plan: "InitPlan") -> Iterator[str]:
    """Yield lines on whether the repository is registered, and with which remote where hosts share a store."""
    from workflows.model.errors import Commands

    checkout, remote = plan.checkout, plan.checkout.remote
    line = f"{plan.repo}: {'already there' if plan.is_known else 'registered'} ({checkout.top})"
    why = checkout.alone
    reason = " ".join(why.message.split()) if why else ""  # git's own words have several lines
    if plan.is_elsewhere:
        yield f"{line}, as other hosts work on it{f'; from here, {reason}' if why else ''}"
    elif why:
        yield f"{line}, for this host only: {reason}"
    else:
        yield f"{line}, for every host at {remote}" if remote else line
    if why:
        hints = why.hint.commands if isinstance(why.hint, Commands) else (why.hint,)
        yield from (f"  try: {hint}" for hint in hints if hint and not hint.startswith("--"))
    if why and not plan.is_elsewhere:
        address = quote(remote) if remote else "URL"
        yield f"  then, so that other hosts work on it too: service repo add {plan.repo} --remote {address}"


def _program(runtime: "RuntimeStatus") -> str:
    named = " ".join(word for word in (runtime.program, runtime.version) if word)
    return ", ".join(word for word in (named, runtime.says) if word)
