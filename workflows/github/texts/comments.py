"""The markdown of every comment, rendered from rows alone: equal rows give equal texts, so comparing digests shows
whether an edit is needed.
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from workflows.contract.render import safe_excerpt
from workflows.github.bound_tree import BoundTree, last_job
from workflows.github.facts import Fact, FactKind
from workflows.github.texts.parts import Part, cell, code, comment, item, line, result_lines, tag, to_copy
from workflows.model.event_kinds import EventKind
from workflows.model.rounds import RoundEnd, RoundKind
from workflows.model.rows import EventRecord, JobRecord, QuestionRecord, RoundRecord
from workflows.model.states import TaskState
from workflows.policy.answers import Verb
from workflows.policy.bounds import ledger_of
from workflows.policy.cut_short import task_words
from workflows.policy.decisions import decision_label
from workflows.text.durations import clock
from workflows.text.inert import address, inert
from workflows.text.markdown import Lines, bullet, cut
from workflows.text.plurals import quantity
from workflows.tree.details import MARKS, spend

RESULT_BYTES = 36_000
BRANCHES_BYTES = 8_000
TABLE_BYTES = 20_000
WAITS_BYTES = 8_000
ASKED_BYTES = 30_000
COPY_BYTES = 15_000
ANSWER_BYTES = 10_000
MOST_NAMED = 20
"""Questions or legs of a round that the status names."""

MOST_LINES = 40
"""The most questions in the example of an answer; it says if there are more."""

MOST_CHOICES = 200
"""Characters of a question's choices in the example of an answer."""

QUOTED = 159
"""Characters quoted of a refused line."""

STATES = {
    TaskState.OPEN: "▶ running",
    TaskState.AWAITING_HUMAN: "⏸ needs you",
    TaskState.BLOCKED: "■ blocked",
    TaskState.DONE: "✔ done",
    TaskState.CANCELLED: "○ cancelled",
}
"""The symbol and the word of each state."""

_ENDED = {TaskState.DONE: "Done", TaskState.CANCELLED: "Cancelled", TaskState.BLOCKED: "Blocked"}
_WRITE = "Whoever may write to this repository ends it with a comment that begins with one of these:"
_WHAT = {
    Verb.ANSWER: "To answer; an answer may run over several lines:",
    Verb.RETRY: "To run again what failed; lines below the command are instructions for that:",
    Verb.CONTINUE: "To go on in spite of the failures; lines below the command go to the lead:",
    Verb.ABORT: "To sum the task up and end it:",
    Verb.EXTEND: "To have more time:",
}


def body(tree: BoundTree, fact: Fact) -> str:
    """Render the whole comment for a due fact of a tree; its last line is the fact's mark."""
    match fact.kind:
        case FactKind.STATUS:
            parts = _status(tree, TABLE_BYTES)
        case FactKind.PAUSE:
            waiting = next(row for row in tree.rounds if row.round_id == fact.about)
            parts = _open_pause(tree, waiting) if waiting.end is None else _over_pause(tree, waiting)
        case FactKind.REMINDER:
            parts = _reminder(tree, _event(tree, fact))
        case FactKind.END:
            parts = _end(tree)
        case FactKind.REFUSAL:
            event = _event(tree, fact)
            return refusal(fact.fact_id, str(event.data.get("actor") or ""), [event.message], _open_commands(tree))
        case _:
            raise ValueError(f"{fact.kind} is no comment that a tree's rows make due")
    return comment(fact.fact_id, parts)


def report(fact_id: str, trees: Sequence[BoundTree]) -> str:
    """Render the status of all trees of a thread: the answer to `/service status`."""
    share = TABLE_BYTES // max(1, len(trees))
    parts = [part for tree in trees for part in _status(tree, share)]
    return comment(fact_id, parts or [Part(["No task belongs to this thread."])])


def refusal(
    fact_id: str, who: str, whys: Sequence[str], commands: Sequence[str] = (), lines: Sequence[str] = ()
) -> str:
    """Render a sentence for each refused command, with the quoted line; `commands` are corrected lines to copy."""
    reasons: Lines = []
    for about, why in zip_longest(lines, whys, fillvalue=""):
        reasons += item(f"{code(cut(about, QUOTED))}: " if about else "", why, 1_000)
    head = f"Not carried out, what {line(who, 60) or 'somebody'} wrote:"
    instead = ["Write instead, in a comment of its own:", "", *to_copy(map(as_comment, commands))] if commands else []
    return comment(fact_id, [Part([head, "", *reasons], ANSWER_BYTES), Part(instead, ANSWER_BYTES)])


def as_comment(command: str) -> str:
    """Convert a command line to its form in a comment."""
    text = " ".join(command.split())
    return f"/{text}" if text.startswith("service resume ") else text


def _event(tree: BoundTree, fact: Fact) -> EventRecord:
    return next(event for event in tree.events if event.event_id == fact.about)


def _open_commands(tree: BoundTree) -> list[str]:
    return [row.commands[0] for row in tree.rounds if row.end is None and row.commands]


def _status(tree: BoundTree, table: int) -> Iterator[Part]:
    """Yield the title, state, open rounds, legs and spend of a tree."""
    everything = _everything(tree)
    yield Part([_heading(tree, "Task"), "", f"**{_state(tree)}**"])
    yield from _caveat(tree)
    waits = list(_waits(tree)) or list(_why(tree))
    if waits:
        yield Part(waits, WAITS_BYTES, everything)
    yield Part(_legs(tree), table, everything)
    yield _pull_requests(tree)
    yield _last_lines(tree)


def _caveat(tree: BoundTree) -> Iterator[Part]:
    if tree.caveat and tree.caveat not in tree.task.reason:
        yield Part([f"Read it with this in mind: {line(tree.caveat, 600)}"], 3_000)


def _waits(tree: BoundTree) -> Iterator[str]:
    for row in tree.rounds:
        if row.end is None:
            named = [code(question.id) for question in row.questions]
            named += [f"{code(failing.leg)} {failing.state}" for failing in row.failing]
            more = f" and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
            asks = f"{code(row.coordinator_id)} asks a person about {', '.join(named[:MOST_NAMED])}{more}"
            yield f"- until {clock(row.expires_at)}: {asks}"


def _legs(tree: BoundTree) -> Lines:
    """Return a table of the legs, in dispatch order."""
    cells = (
        (_name(job), _worker(job), f"{MARKS[job.state]} {job.state}", decision_label(job.state, job.decision))
        for job in tree.jobs
    )
    rows = [f"| {' | '.join(row)} |" for row in cells]
    return ["| Part | Agent | State | Result |", "|---|---|---|---|", *rows] if rows else []


def _name(job: JobRecord) -> str:
    return code(job.delegation_id) if job.delegation_id else job.name


def _worker(job: JobRecord) -> str:
    again = f", attempt {job.attempt}" if job.attempt > 1 else ""
    return f"{cell(job.agent)}, {job.action}{again}"


def _open_pause(tree: BoundTree, waiting: RoundRecord) -> Iterator[Part]:
    """Yield whom the pause asks, the questions or failures, the commands and the deadline (rulings F1, B3)."""
    asks = waiting.kind is RoundKind.ASK
    what = "asks what only a person can decide" if asks else "has failed parts, and a person decides how it goes on"
    yield Part([_heading(tree, "A person is needed")])
    until = f"Without an answer until **{clock(waiting.expires_at)}** the task is summed up and ends."
    yield Part([f"{_to(tree)}{code(waiting.coordinator_id)} {what}. {until}"])
    yield Part(list(_questions(waiting)), ASKED_BYTES, _everything(tree))
    yield Part([_WRITE, "", *_ways(waiting)], COPY_BYTES, _everything(tree))
    yield Part([_everything(tree)])


def _over_pause(tree: BoundTree, waiting: RoundRecord) -> Iterator[Part]:
    """Yield the outcome of a pause that is over, and its questions."""
    yield Part([_heading(tree, "A person was asked")])
    yield Part([f"This is over: {line(waiting.closed, 600)}."])
    yield Part(list(_questions(waiting)), ASKED_BYTES // 2, _everything(tree))
    lines = [text for recorded in _recorded_lines(tree, waiting) for text in item("", recorded, 600)]
    if lines:
        yield Part(["Recorded:", "", *lines], ASKED_BYTES // 2, _everything(tree))
    yield Part([_everything(tree)])


def _reminder(tree: BoundTree, event: EventRecord) -> Iterator[Part]:
    """Yield a short form of the pause's comment; once the round is over, one sentence that says so."""
    round_id = f"{event.job_id}-r{event.data['round']}"
    waiting = next((row for row in tree.rounds if row.round_id == round_id), None)
    if waiting is None or waiting.end is not None:
        over = line(waiting.closed) if waiting else "its round is not known any more"
        yield Part([f"This reminder is over: {over}."])
        return
    left = line(event.message.partition(":")[0], 60)
    yield Part(
        [f"{_to(tree)}{left}: {code(waiting.coordinator_id)} still waits, until **{clock(waiting.expires_at)}**."]
    )
    yield Part([_WRITE, "", *_ways(waiting)], COPY_BYTES, _everything(tree))
    yield Part([_everything(tree)])


def _recorded_lines(tree: BoundTree, waiting: RoundRecord) -> list[str]:
    """Return the lines of the answer that ended the pause, as the tree's event recorded them."""
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


def _questions(waiting: RoundRecord) -> Iterator[str]:
    for question in waiting.questions:
        by = f" (asked by {code(question.leg)})" if question.leg else ""
        yield from item(f"{code(question.id)}{by}: ", question.prompt)
        for choice in question.choices:
            yield from (f"  {text}" for text in bullet([line(choice)]))
    for failing in waiting.failing:
        yield from item(f"{code(failing.leg)} ({code(failing.job_id)}) {failing.state}: ", failing.reason)


def _ways(waiting: RoundRecord) -> Lines:
    """Return each verb that the round takes, as a line to copy into a comment."""
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
    """Return an example of a complete answer, with a line for each question."""
    lines = [f"{question.id}: <{_choices(question)}>" for question in questions[:MOST_LINES]]
    more = len(questions) - MOST_LINES
    note = ["", f"and a line of the same form for each of the {quantity(more, 'further question')}"] if more > 0 else []
    return [*to_copy([start, *lines]), *note]


def _choices(question: QuestionRecord) -> str:
    """Return a question's choices if they can be written verbatim, else the word "text"."""
    text = " | ".join(question.choices)
    plain = (
        text.isprintable()
        and not set("".join(question.choices)) & set("`<>|")
        and inert(safe_excerpt(text, MOST_CHOICES)) == text
    )
    return text if text and plain else "text"


def _end(tree: BoundTree) -> Iterator[Part]:
    """Yield the decision, summary, findings, branches and spend, and the caveat of the result."""
    everything = _everything(tree)
    yield Part([_heading(tree, "Cut short" if tree.task.cut_short else _ENDED.get(tree.task.state, "Ended"))])
    yield Part([text for why in _why(tree) for text in (why, "")], 4_000, everything)
    yield from _caveat(tree)
    result = result_lines(tree.result, last_job(tree), RESULT_BYTES) or ["Nobody summed it up."]
    yield Part(result, RESULT_BYTES, everything)
    branches = list(_branches(tree))
    if branches:
        yield Part(["#### Branches", "", *branches], BRANCHES_BYTES, everything)
    yield _pull_requests(tree)
    yield _last_lines(tree)


def _branches(tree: BoundTree) -> Iterator[str]:
    for job in tree.jobs:
        for branch in job.work:
            merged = branch in tree.merged
            how = "merged" if merged else f"not merged: {code(f'service job merge {job.job_id}')}"
            yield f"- {code(branch)} {how}"


def _state(tree: BoundTree) -> str:
    """Return the symbol and the word of the tree's state."""
    return f"✘ {task_words(tree.task)}" if tree.task.cut_short else STATES[tree.task.state]


def _heading(tree: BoundTree, what: str) -> str:
    return f"### {what}: {line(tree.task.title, 200) or 'untitled'}"


def _why(tree: BoundTree) -> Iterator[str]:
    """Yield the reason of the tree's state and the next command, unless the state says all."""
    if tree.task.why:
        yield f"Why: {line(tree.task.why, 600)}"
    if tree.task.next and tree.task.state is not TaskState.AWAITING_HUMAN:
        yield f"Next: {code(tree.task.next)}"


def _everything(tree: BoundTree) -> str:
    """Return a sentence that says where to see the whole tree."""
    page = f", or on [the dashboard](<{address(tree.page)}>)" if tree.page else ""
    return f"The whole of it: {code(f'service job tree {tree.root}')}{page}."


def _pull_requests(tree: BoundTree) -> Part:
    """Return the list of the tree's pull requests."""
    return Part([f"- Published as {url}" for url in tree.published], 4_000, _everything(tree))


def _last_lines(tree: BoundTree) -> Part:
    """Return the tree's use of each bound, and the time of the last change."""
    used = spend(tree.bounds, ledger_of(tree.task, tree.jobs, tree.changed_at))
    return Part([f"Used: {used}.", "", f"{_everything(tree)} As of {clock(tree.changed_at)}."])
