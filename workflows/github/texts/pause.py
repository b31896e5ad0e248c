"""The comment on a pause: the people meant, the questions or failures, the commands, the deadline (rulings F1, B3)."""

from collections.abc import Iterator

from workflows.contract.render import shown
from workflows.github.bound_tree import BoundTree
from workflows.github.facts import pause_id
from workflows.github.texts import views
from workflows.github.texts.parts import Part, code, comment, item, line, tag, to_copy
from workflows.model.event_kinds import EventKind
from workflows.model.rounds import RoundEnd, RoundKind
from workflows.model.rows import EventRecord, QuestionRecord, RoundRecord
from workflows.policy.answers import Verb
from workflows.text.durations import clock
from workflows.text.inert import inert
from workflows.text.markdown import Lines, bullet

ASKED_BYTES = 30_000
COPY_BYTES = 15_000
MOST_LINES = 40
"""Questions in the example; it says if there are more."""

MOST_CHOICES = 200
"""Characters of a question's choices in the example."""

_WRITE = "Whoever may write to this repository ends it with a comment that begins with one of these:"
_WHAT = {
    Verb.ANSWER: "To answer; an answer may run over several lines:",
    Verb.RETRY: "To run again what failed; lines below the command are instructions for that:",
    Verb.CONTINUE: "To go on in spite of the failures; lines below the command go to the coordinator:",
    Verb.ABORT: "To have the tree summed up and ended:",
    Verb.EXTEND: "To have more time:",
}


def pause(tree: BoundTree, waiting: RoundRecord, fact_id: str = "") -> str:
    """Render the comment on a pause: its questions while it is open, its outcome afterwards."""
    parts = _open(tree, waiting) if waiting.end is None else _over(tree, waiting)
    return comment(fact_id or pause_id(waiting.round_id), parts)


def reminder(tree: BoundTree, event: EventRecord, fact_id: str = "") -> str:
    """Render a reminder: a short form of the pause's comment; once the round is over, one sentence that says so."""
    round_id = f"{event.job_id}-r{event.data['round']}"
    waiting = next((each for each in tree.rounds if each.round_id == round_id), None)
    if waiting is None or waiting.end is not None:
        over = line(waiting.closed) if waiting else "its round is not known any more"
        return comment(fact_id or event.event_id, [Part([f"This reminder is over: {over}."], 2_000, "")])
    left = line(event.message.partition(":")[0], 60)
    said = f"{_to(tree)}{left}: {code(waiting.coordinator_id)} still waits, until **{clock(waiting.expires_at)}**."
    copies = Part([_WRITE, "", *_ways(waiting)], COPY_BYTES, views.everything(tree))
    return comment(
        fact_id or event.event_id, [Part([said], 2_000, ""), copies, Part([views.everything(tree)], 2_000, "")]
    )


def _open(tree: BoundTree, waiting: RoundRecord) -> Iterator[Part]:
    asks = waiting.kind is RoundKind.ASK
    what = "asks what only a person can decide" if asks else "has failing legs, and a person decides how it goes on"
    yield Part([views.heading(tree, "A person is needed")], 2_000, "")
    until = f"Without an answer until **{clock(waiting.expires_at)}** the tree is summed up and ends."
    yield Part([f"{_to(tree)}{code(waiting.coordinator_id)} {what}. {until}"], 2_000, "")
    yield Part(list(_asked(waiting)), ASKED_BYTES, views.everything(tree))
    yield Part([_WRITE, "", *_ways(waiting)], COPY_BYTES, views.everything(tree))
    yield Part([views.everything(tree)], 2_000, "")


def _over(tree: BoundTree, waiting: RoundRecord) -> Iterator[Part]:
    yield Part([views.heading(tree, "A person was asked")], 2_000, "")
    yield Part([f"This is over: {line(waiting.closed, 600)}."], 2_000, "")
    yield Part(list(_asked(waiting)), ASKED_BYTES // 2, views.everything(tree))
    lines = [each for text in _recorded(tree, waiting) for each in item("", text, 600)]
    if lines:
        yield Part(["Recorded:", "", *lines], ASKED_BYTES // 2, views.everything(tree))
    yield Part([views.everything(tree)], 2_000, "")


def _recorded(tree: BoundTree, waiting: RoundRecord) -> list[str]:
    """Return the lines recorded of the answer that ended the pause, from the tree's event."""
    if waiting.end in {RoundEnd.EXPIRED, RoundEnd.KILLED, RoundEnd.OVERTAKEN}:
        return []
    for event in reversed(tree.events):
        mine = event.job_id == waiting.coordinator_id and event.data.get("round") == waiting.number
        if event.kind == EventKind.RESUME_ACCEPTED and mine and event.data.get("verb") != Verb.EXTEND:
            recorded = event.data.get("recorded")
            return recorded if isinstance(recorded, list) else []
    return []


def _to(tree: BoundTree) -> str:
    names = tag(tree.handle, tree.owner)
    return f"{names} " if names else ""


def _asked(waiting: RoundRecord) -> Iterator[str]:
    for question in waiting.questions:
        by = f" (asked by {code(question.leg)})" if question.leg else ""
        lines = item(f"{code(question.id)}{by}: ", question.prompt)
        yield from lines
        for choice in question.choices:
            yield from (f"  {each}" for each in bullet([line(choice)]))
    for failing in waiting.failing:
        yield from item(f"{code(failing.leg)} ({code(failing.job_id)}) {failing.state}: ", failing.reason)


def _ways(waiting: RoundRecord) -> Lines:
    """Return each verb of the round as a comment line to copy."""
    lines: Lines = []
    for verb in waiting.verbs:
        start = f"/service resume {waiting.coordinator_id} {verb}"
        lines += [_WHAT[Verb(verb)], "", *_example(Verb(verb), start, waiting), ""]
    return lines


def _example(verb: Verb, start: str, waiting: RoundRecord) -> Lines:
    if verb is Verb.ANSWER:
        return _answer(start, waiting.questions)
    return to_copy([f"{start} 12h" if verb is Verb.EXTEND else start])


def _answer(start: str, questions: tuple[QuestionRecord, ...]) -> Lines:
    """Return the example of a complete answer, with a line for each question."""
    lines = [f"{each.id}: <{_choices(each)}>" for each in questions[:MOST_LINES]]
    more = len(questions) - MOST_LINES
    note = ["", f"and a line of the same form for each of the {more} further questions"] if more > 0 else []
    return [*to_copy([start, *lines]), *note]


def _choices(question: QuestionRecord) -> str:
    """Return the choices if they can be written verbatim, else the word "text"."""
    text = " | ".join(question.choices)
    plain = (
        text.isprintable()
        and not set("".join(question.choices)) & set("`<>|")
        and inert(shown(text, MOST_CHOICES)) == text
    )
    return text if text and plain else "text"
