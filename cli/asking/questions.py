"""A round's questions, shown and asked on the terminal (rulings F5, F6)."""

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cli.drawing.lines import headed
from cli.drawing.output import asked, confirmed, tell, tell_error
from cli.drawing.words import actor, clock, one_line

LONGEST_LINE = 4095
"""Bytes of a line that a terminal takes; it drops the rest."""

if TYPE_CHECKING:
    from bridge.operations.service import Service
    from workflows.model.orders import ResumeOrder
    from workflows.model.rows import QuestionRecord, RoundRecord


@dataclass
class Said:
    """A person's typed answer, and the deviations that the person confirmed."""

    verb: str
    text: str = ""
    partial: bool = False
    other: bool = False
    lines: list[str] = field(default_factory=list)

    def order(self, job_id: str, round_: int | None, digest: str) -> "ResumeOrder":
        """Build the order for the tree. Characters that a terminal accepts and no store does are cleaned."""
        from workflows.model.orders import ResumeOrder
        from workflows.policy.answers import clean

        return ResumeOrder(
            actor=actor(),
            channel="cli",
            job_id=clean(job_id),
            verb=clean(self.verb),
            text=clean(self.text),
            round=round_,
            digest=digest,
            partial=self.partial,
            other=self.other,
        )


def ask(waiting: "RoundRecord", *, may_wait: bool = False) -> Said | None:
    """Ask each question, or what to do about the failures. Return None if the person leaves that for later."""
    if not waiting.questions or "answer" not in waiting.verbs:
        return _decide(waiting, may_wait=may_wait)
    said = Said("answer")
    for number, question in enumerate(waiting.questions):
        text = _answer(question, said, may_wait=may_wait and number == 0)
        if text is None:
            return None
        if text:
            said.lines.append(f"{question.id}: {text}")
    said.text = "\n".join(said.lines)
    return said


def shown(waiting: "RoundRecord", *, briefly: bool = False) -> list[str]:
    """Return the round's questions and commands as lines; with `briefly` only the heading, because the questions
    follow.
    """
    lines = [f"{waiting.coordinator_id} waits for you until {clock(waiting.expires_at)} ({waiting.kind})"]
    if briefly:
        return lines
    for question in waiting.questions:
        lines += [f"  {question.id}: {one_line(question.prompt, 300)}", *_choices(question)]
    for failing in waiting.failing:
        lines.append(f"  {failing.leg} ({failing.job_id}) {failing.state}: {one_line(failing.reason, 300)}")
    return [*lines, *(f"  {command}" for command in waiting.commands)]


def _answer(question: "QuestionRecord", said: Said, *, may_wait: bool) -> str | None:
    """Ask one question. Return "" if it stays open on purpose, None if everything is left for later."""
    from workflows.policy.answers import is_choice

    tell(*headed(f"{question.id}:", question.prompt), *_choices(question))
    numbered = _numbered(question)
    while True:
        text = _typed("answer")
        if not text and may_wait:
            return None
        if not text:
            if confirmed(f"leave {question.id} unanswered?"):
                said.partial = True
                return ""
            continue
        if numbered and text.isdigit() and text not in numbered:
            tell(f"there is no choice {text}: type a number from 1 to {len(numbered)}, or an answer in words")
            continue
        text = numbered.get(text, text)
        if not question.choices or is_choice(text, question.choices):
            return text
        if confirmed("that is not one of the choices; send it as the answer?"):
            said.other = True
            return text


def _typed(question: str) -> str:
    """Ask again while an answer reaches the terminal's limit of a line, which may have cut it."""
    while len((text := asked(question, "")).encode()) >= LONGEST_LINE:
        tell(f"a terminal takes {LONGEST_LINE:,} bytes in one line, and this was longer; to give the text as a file:")
        tell("  Ctrl-C, then: service resume JOB VERB --file PATH")
    return text


def _numbered(question: "QuestionRecord") -> dict[str, str]:
    """Number the choices; if a choice is itself a number, numbers are ambiguous and only the full text counts."""
    if any(each.strip().isdigit() for each in question.choices):
        return {}
    return {str(number): each for number, each in enumerate(question.choices, 1)}


def _choices(question: "QuestionRecord") -> list[str]:
    lines = [f"    {number}) {each}" for number, each in _numbered(question).items()]
    return lines or [f"    - {each}" for each in question.choices]


def _decide(waiting: "RoundRecord", *, may_wait: bool) -> Said | None:
    for question in waiting.questions:
        tell(*headed(f"{question.id}:", question.prompt), "  it can't be answered any more: no job would be told")
    for failing in waiting.failing:
        tell(f"{failing.leg} ({failing.job_id}) {failing.state}: {failing.reason}")
    verbs = {str(number): each for number, each in enumerate(waiting.verbs, 1)}
    for number, each in verbs.items():
        tell(f"    {number}) {each}")
    while (verb := verbs.get(typed := _typed("what now"), typed)) not in waiting.verbs:
        if not typed and may_wait:
            return None
        tell(f"type a number from 1 to {len(verbs)}, or one of the words; Ctrl-C leaves it as it is")
    return Said(verb, _duration() if verb == "extend" else _typed("instructions, if any"))


def _duration() -> str:
    """Ask how much longer the pause may last, until the answer is a duration."""
    from workflows.policy.answers import refuse_duration
    from workflows.text.durations import abbreviate

    while refusal := refuse_duration(typed := abbreviate(_typed("how much longer, such as 2h or 3 days"))):
        tell(refusal.message)
    return typed


class Asker:
    """Shows each round once, and again when questions have joined. On a terminal it offers to answer."""

    def __init__(self, service: "Service", *, json: bool) -> None:
        self._service = service
        self._offers = not json and sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()
        self._seen: set[tuple[str, str]] = set()

    def has_news(self, root: str) -> bool:
        """Return whether the tree has a round that was not shown yet."""
        return bool(self._news(root))

    def look(self, root: str) -> None:
        """Show new rounds, and offer to answer them."""
        for each in self._news(root):
            self._seen.add((each.round_id, each.digest))
            tell("", *shown(each, briefly=self._offers))
            if self._offers:
                self._offer(each)

    def _news(self, root: str) -> "list[RoundRecord]":
        from bridge.operations.jobs import rounds

        return [each for each in rounds.open_of(self._service, root) if (each.round_id, each.digest) not in self._seen]

    def _offer(self, waiting: "RoundRecord") -> None:
        import asyncio

        from bridge.operations.orders.resume import resume
        from cli.invocation.calling import for_people
        from workflows.model.errors import ServiceError

        for_people("resume")
        tell("Answer now, or press Enter for later.")
        said = ask(waiting, may_wait=True)
        if said is None:
            tell(f"later: service resume {waiting.coordinator_id}")
            return
        order = said.order(waiting.coordinator_id, waiting.number, waiting.digest)
        try:
            tell(*asyncio.run(resume(self._service, order)).message.split("\n"))
        except ServiceError as error:
            tell_error(error)
