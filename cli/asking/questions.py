"""A round's questions, shown and asked on the terminal (rulings F5, F6)."""

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cli.drawing.lines import with_head
from cli.drawing.output import ask_text, ask_yes_or_no, tell, tell_error
from cli.drawing.words import actor, clock, one_line

LONGEST_LINE = 4095
"""Most bytes of a typed line that a terminal passes on; it drops the rest."""

if TYPE_CHECKING:
    from bridge.operations.service import Service
    from workflows.model.orders import ResumeOrder
    from workflows.model.rows import QuestionRecord, RoundRecord


@dataclass
class TypedAnswer:
    """A person's typed answer, and the deviations that the person confirmed."""

    verb: str
    text: str = ""
    partial: bool = False
    other: bool = False
    lines: list[str] = field(default_factory=list)

    def order(self, job_id: str, round_: int | None, digest: str) -> "ResumeOrder":
        """Build the order for the tree. Remove characters that can be typed but not stored."""
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


def ask(waiting: "RoundRecord", *, may_wait: bool = False) -> TypedAnswer | None:
    """Ask each question, or what to do about the failures. Return None if the person postpones the answer."""
    if not waiting.questions or "answer" not in waiting.verbs:
        return _decide(waiting, may_wait=may_wait)
    answer = TypedAnswer("answer")
    for number, question in enumerate(waiting.questions):
        text = _answer(question, answer, may_wait=may_wait and number == 0)
        if text is None:
            return None
        if text:
            answer.lines.append(f"{question.id}: {text}")
    answer.text = "\n".join(answer.lines)
    return answer


def round_lines(waiting: "RoundRecord", *, briefly: bool = False) -> list[str]:
    """Return the round's questions and commands as lines; with `briefly` only the heading, for use before the questions
    are asked.
    """
    lines = [f"{waiting.coordinator_id} waits for you until {clock(waiting.expires_at)} ({waiting.kind})"]
    if briefly:
        return lines
    for question in waiting.questions:
        lines += [f"  {question.id}: {one_line(question.prompt, 300)}", *_choices(question)]
    for failing in waiting.failing:
        lines.append(f"  {failing.leg} ({failing.job_id}) {failing.state}: {one_line(failing.reason, 300)}")
    return [*lines, *(f"  {command}" for command in waiting.commands)]


def _answer(question: "QuestionRecord", answer: TypedAnswer, *, may_wait: bool) -> str | None:
    """Ask one question. Return "" if the person leaves this question open, None if the person postpones the whole
    answer.
    """
    from workflows.policy.answers import is_choice

    tell(*with_head(f"{question.id}:", question.prompt), *_choices(question))
    numbered = _numbers(question)
    while True:
        text = _ask_line("answer")
        if not text and may_wait:
            return None
        if not text:
            if ask_yes_or_no(f"leave {question.id} unanswered?"):
                answer.partial = True
                return ""
            continue
        if numbered and text.isdigit() and text not in numbered:
            tell(f"there is no choice {text}: type a number from 1 to {len(numbered)}, or an answer in words")
            continue
        text = numbered.get(text, text)
        if not question.choices or is_choice(text, question.choices):
            return text
        if ask_yes_or_no("that is not one of the choices; send it as the answer?"):
            answer.other = True
            return text


def _ask_line(question: str) -> str:
    """Ask for a line. Ask again if the answer is as long as a terminal's longest line, since it may have been cut."""
    while len((text := ask_text(question, "")).encode()) >= LONGEST_LINE:
        tell(f"a terminal takes {LONGEST_LINE:,} bytes in one line, and this was longer; to give the text as a file:")
        tell("  Ctrl-C, then: service resume JOB VERB --file PATH")
    return text


def _numbers(question: "QuestionRecord") -> dict[str, str]:
    """Map a number to each choice. Return no numbers if a choice is itself a number, which would be ambiguous."""
    if any(choice.strip().isdigit() for choice in question.choices):
        return {}
    return {str(number): choice for number, choice in enumerate(question.choices, 1)}


def _choices(question: "QuestionRecord") -> list[str]:
    lines = [f"    {number}) {choice}" for number, choice in _numbers(question).items()]
    return lines or [f"    - {choice}" for choice in question.choices]


def _decide(waiting: "RoundRecord", *, may_wait: bool) -> TypedAnswer | None:
    for question in waiting.questions:
        tell(*with_head(f"{question.id}:", question.prompt), "  it can't be answered any more: no job would be told")
    for failing in waiting.failing:
        tell(f"{failing.leg} ({failing.job_id}) {failing.state}: {failing.reason}")
    verbs = {str(number): word for number, word in enumerate(waiting.verbs, 1)}
    for number, word in verbs.items():
        tell(f"    {number}) {word}")
    while (verb := verbs.get(typed := _ask_line("what now"), typed)) not in waiting.verbs:
        if not typed and may_wait:
            return None
        tell(f"type a number from 1 to {len(verbs)}, or one of the words; Ctrl-C leaves it as it is")
    return TypedAnswer(verb, _duration() if verb == "extend" else _ask_line("instructions, if any"))


def _duration() -> str:
    """Ask how much longer the pause may last, until the answer is a duration."""
    from workflows.policy.answers import refuse_duration
    from workflows.text.durations import abbreviate

    while refusal := refuse_duration(typed := abbreviate(_ask_line("how much longer, such as 2h or 3 days"))):
        tell(refusal.message)
    return typed


class Asker:
    """Shows each round once, and again when it has new questions. On a terminal it offers to answer them."""

    def __init__(self, service: "Service", *, json: bool) -> None:
        self._service = service
        self._offers = not json and sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()
        self._seen: set[tuple[str, str]] = set()

    def has_news(self, root: str) -> bool:
        """Return whether the tree has a round or questions that were not shown yet."""
        return bool(self._news(root))

    def look(self, root: str) -> None:
        """Show new rounds, and offer to answer them."""
        for round_ in self._news(root):
            self._seen.add((round_.round_id, round_.digest))
            tell("", *round_lines(round_, briefly=self._offers))
            if self._offers:
                self._offer(round_)

    def _news(self, root: str) -> "list[RoundRecord]":
        from bridge.operations.jobs import rounds

        return [
            round_
            for round_ in rounds.open_of(self._service, root)
            if (round_.round_id, round_.digest) not in self._seen
        ]

    def _offer(self, waiting: "RoundRecord") -> None:
        import asyncio

        from bridge.operations.orders.resume import resume
        from cli.invocation.calling import for_people
        from workflows.model.errors import ServiceError

        for_people("resume")
        tell("Answer now, or press Enter for later.")
        answer = ask(waiting, may_wait=True)
        if answer is None:
            tell(f"later: service resume {waiting.coordinator_id}")
            return
        order = answer.order(waiting.coordinator_id, waiting.number, waiting.digest)
        try:
            tell(*asyncio.run(resume(self._service, order)).message.split("\n"))
        except ServiceError as error:
            tell_error(error)
