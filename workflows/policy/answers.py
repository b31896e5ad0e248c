"""A person's answer to a pause: the verbs of each kind of round, and the answers to its questions (rulings F4, F5).

A channel that can show a refusal takes an answer completely or not at all.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from workflows.contract.faults import nearest
from workflows.contract.storable import short_line, storable
from workflows.model.orders import ResumeOrder
from workflows.model.refusals import Refusal, ResumeFault
from workflows.model.rounds import RoundEnd, RoundKind
from workflows.text.durations import DurationError, format_duration, parse_duration

TEXT_LIMIT = 16_000
LONGEST_PAUSE_SECONDS = 365 * 86_400.0
MOST_UNMATCHED = 20

SHOWN = 200
"""Maximum length of an answer that is repeated in a refusal and in the suggested line."""

ASKS_BACK = frozenset({"cli", "bridge", "dashboard", "mcp"})
"""Channels on which the tree itself requires a complete answer."""

SHOWS_REFUSALS = ASKS_BACK | {"comment"}
"""Channels whose answers are checked for completeness before they are sent to a tree. The tree accepts an incomplete
comment: old histories need that.
"""

CROSSED = (
    "nothing was sent: a line begins with the name of another question and a colon,"
    " so it would be read as the answer to that one; put a word before it"
)
"""The refusal of answers that `compose` can't write."""

Asks = Mapping[str, Sequence[str]]
"""The questions of a round by id, with their suggested choices."""

_HEAD = re.compile(r"\s*(?P<quote>[\"']?)(?P<id>[A-Za-z0-9][A-Za-z0-9._-]*)\s*:(?P<text>.*)", re.DOTALL)
_ARGUMENT = re.compile(r"\"[^\"]*\"")
_ARGUMENTS = re.compile(r"\s*\"[^\"]*\"(?:\s+\"[^\"]*\")+\s*")
_QUOTES = {'"': '"', "'": "'", "\N{LEFT DOUBLE QUOTATION MARK}": "\N{RIGHT DOUBLE QUOTATION MARK}"}
_LINE_END = re.compile("\r\n?|[\x85\u2028\u2029]")


class Verb(StrEnum):
    """What a person orders in a round."""

    ANSWER = "answer"
    RETRY = "retry"
    CONTINUE = "continue"
    ABORT = "abort"
    EXTEND = "extend"


TAKES: dict[RoundKind, tuple[Verb, ...]] = {
    RoundKind.ASK: (Verb.ANSWER, Verb.EXTEND),
    RoundKind.FAILURE: (Verb.RETRY, Verb.CONTINUE, Verb.ABORT, Verb.EXTEND),
}
ENDS: Mapping[str, RoundEnd] = {
    Verb.ANSWER: RoundEnd.ANSWERED,
    Verb.RETRY: RoundEnd.RETRIED,
    Verb.CONTINUE: RoundEnd.CONTINUED,
    Verb.ABORT: RoundEnd.ABORTED,
}
"""How each verb ends a round; `extend` does not end it."""

_ARTICLE = {RoundKind.ASK: "an ask", RoundKind.FAILURE: "a failure"}


@dataclass
class Answers:
    """Answers by question id; text outside of them is guidance. No text is dropped."""

    by_id: dict[str, str] = field(default_factory=dict)
    guidance: str = ""
    unmatched: tuple[str, ...] = ()
    """Words that stand where an id should, but are not ids of the round."""
    text: str = field(default="", compare=False)
    """The person's whole text, which was parsed; verbs other than `answer` use only this."""


@dataclass(frozen=True)
class Meant:
    """Irregularities of an answer that the person confirms as intended."""

    partial: bool = False
    """True if questions are left unanswered on purpose."""
    other: bool = False
    """True if an answer may differ from the choices."""


def commands(job_id: str, verbs: Sequence[Verb], question_ids: Sequence[str]) -> tuple[str, ...]:
    """Return the exact commands to copy, one per verb."""
    return tuple(_command(job_id, verb, question_ids) for verb in verbs)


def _command(job_id: str, verb: Verb, question_ids: Sequence[str]) -> str:
    start = f"service resume {job_id} {verb}"
    match verb:
        case Verb.ANSWER:
            return " ".join([start, *(f'"{each}: <text>"' for each in question_ids)])
        case Verb.RETRY | Verb.CONTINUE | Verb.ABORT:
            return start  # instructions may follow
        case Verb.EXTEND:
            return f"{start} <duration>"


def refuse_order(
    order: ResumeOrder, kind: RoundKind, asks: Asks, job_id: str, what: str, *, whole: bool
) -> Refusal | None:
    """Return why a round refuses an order's verb or text, or None. `what` names the round.

    With `whole`, an answer is refused if a part of it would be lost.
    """
    refusal = refuse_verb(order.verb, order.text, kind, list(asks), what)
    if refusal or order.verb != Verb.ANSWER or not whole:
        return refusal
    return refuse_incomplete(order.text, asks, Meant(partial=order.partial, other=order.other), job_id, what)


def refuse_verb(verb: str, text: str, kind: RoundKind, ids: Sequence[str], what: str) -> Refusal | None:
    """Return why this round refuses the verb or its text, or None. `what` names the round."""
    takes = TAKES[kind]
    if verb not in takes:
        named = ", ".join(f"`{each}`" for each in takes)
        message = f"{what} is {_ARTICLE[kind]} round: it takes {named}, not `{short_line(verb, 40)}`"
        return Refusal(ResumeFault.WRONG_VERB, message, {"kind": kind, "verbs": list(takes)})
    if refusal := refuse_length(text):
        return refusal
    if verb == Verb.ANSWER and not ((answers := parse(text, ids)).by_id or answers.guidance):
        return Refusal(ResumeFault.EMPTY_ANSWER, f"the answer is empty: {what} asks {', '.join(ids)}")
    return refuse_duration(text) if verb == Verb.EXTEND else None


def refuse_length(text: str) -> Refusal | None:
    """Return a refusal if the text exceeds `TEXT_LIMIT`. `bridge` calls this before it sends an order; the workflow
    checks again.
    """
    if len(text) <= TEXT_LIMIT:
        return None
    message = f"{len(text):,} characters are more than the {TEXT_LIMIT:,} a resume takes"
    return Refusal(ResumeFault.TOO_LONG, f"{message}: put them where the agents can read them, and say where that is")


def refuse_duration(text: str) -> Refusal | None:
    """Return a refusal if the text is not a duration by which to extend a pause."""
    try:
        seconds = duration(text)
    except DurationError as error:
        return Refusal(ResumeFault.BAD_DURATION, f"the duration {error}")
    if seconds <= 0:
        return Refusal(ResumeFault.BAD_DURATION, "the duration must be positive")
    if seconds > LONGEST_PAUSE_SECONDS:
        longest = format_duration(LONGEST_PAUSE_SECONDS)
        return Refusal(ResumeFault.BAD_DURATION, f"the duration must be at most {longest} at a time")
    return None


def duration(text: str) -> float:
    """Return the seconds of `extend <duration>` (ruling A10)."""
    return parse_duration(clean(text).strip())


def parse(body: str, ids: Sequence[str]) -> Answers:
    """Parse one `<id>: text` per line; text ends at the next known id; a single question accepts a bare body."""
    lines = list(_lines(clean(body)))
    sections = list(_sections(lines, frozenset(ids)))
    if len(ids) == 1 and all(known is None for known, _ in sections):
        text = unquote("\n".join(lines))
        return Answers({ids[0]: text} if text else {}, text=body)
    texts_of: dict[str, list[str]] = {}
    for known, text in sections:
        if text:
            texts_of.setdefault(known or "", []).append(text)
    guidance = "\n".join(texts_of.pop("", []))
    by_id = {name: "\n".join(texts) for name, texts in texts_of.items()}
    return Answers(by_id, guidance, _unmatched_ids(lines, ids), text=body)


def compose(answers: Mapping[str, str], ids: Sequence[str]) -> str | None:
    """Write answers to a round's questions as one text, each under its question's id. None if a line of one would be
    read as the answer to another question (ruling F5).
    """
    # A line that begins with a blank belongs to the answer above it.
    parts = [f"{name}: {text}".replace("\n", "\n ") for name, text in answers.items()]
    alone = {name: parse(part, [name]).by_id.get(name) for name, part in zip(answers, parts, strict=True)}
    text = "\n".join(parts)
    return text if parse(text, ids).by_id == alone else None


def strange_ids(body: str, ids: Sequence[str]) -> tuple[str, ...]:
    """Return unknown words that stand where an id should: first in a line that does not begin with a blank.

    A body without any id is one answer: only its first line is checked.
    """
    lines = list(_lines(clean(body)))
    return _unmatched_ids([line for line in lines[: 1 if is_bare(body, ids) else None] if not line[:1].isspace()], ids)


def is_bare(body: str, ids: Sequence[str]) -> bool:
    """Return whether the body contains no id, so that all of it answers the only question."""
    lines = _lines(clean(body))
    return len(ids) == 1 and not any(head["id"] in ids for line in lines if (head := _HEAD.fullmatch(line)))


def with_ids(body: str, names: Mapping[str, str]) -> str:
    """Replace the ids at the beginning of lines by the given ones."""
    lines = [(line, _HEAD.fullmatch(line)) for line in _lines(clean(body))]
    return "\n".join(
        f"{head['quote']}{names[head['id']]}:{head['text']}" if head and head["id"] in names else line
        for line, head in lines
    )


def clean(text: str) -> str:
    """Normalise an answer's line ends, and replace characters that cannot be stored."""
    return storable(_LINE_END.sub("\n", text))


def unquote(text: str) -> str:
    """Remove the quotes around an answer, if one pair encloses all of it."""
    text = text.strip()
    closing = _QUOTES.get(text[:1])
    if closing is None or len(text) < 2 or text[-1] != closing:
        return text
    inside = text[1:-1]
    return text if closing in inside or text[0] in inside else inside.strip()


def _lines(body: str) -> Iterator[str]:
    """Split a body into lines: unquote a quoted one, and split `"a: x" "b: y"` on one line into two."""
    for line in unquote(body).split("\n"):
        yield from _ARGUMENT.findall(line) if _ARGUMENTS.fullmatch(line) else (line,)


def _sections(lines: Sequence[str], ids: frozenset[str]) -> Iterator[tuple[str | None, str]]:
    """Yield (None, the text before the first known id), then each known id with its text."""
    known, quote, texts = None, "", []
    for line in lines:
        head = _HEAD.fullmatch(line)
        if head is None or head["id"] not in ids:
            texts.append(line)
            continue
        yield known, _value(quote, texts)
        known, quote, texts = head["id"], head["quote"], [head["text"]]
    yield known, _value(quote, texts)


def _value(quote: str, texts: Sequence[str]) -> str:
    """Return an answer's text without its quotes: the closing one of `"id: text"`, or the pair around the text."""
    text = "\n".join(texts).strip()
    return text[:-1].strip() if quote and text.endswith(quote) else unquote(text)


def _unmatched_ids(lines: Sequence[str], ids: Sequence[str]) -> tuple[str, ...]:
    """Return unknown words that stand where an id should. A word counts only before a colon and a blank: `https://...`
    and `12:30` do not.
    """
    heads = (_HEAD.fullmatch(line) for line in lines)
    names = (head["id"] for head in heads if head and (not head["text"] or head["text"][0].isspace()))
    return tuple(dict.fromkeys(name for name in names if name not in ids))[:MOST_UNMATCHED]


def refuse_incomplete(text: str, asks: Asks, meant: Meant, job_id: str, what: str) -> Refusal | None:
    """Return a refusal with the lines to type instead, unless the answer is complete or its irregularities are
    confirmed.
    """
    answers = parse(text, list(asks))
    complaints = [*_strange(text, asks, meant), *_missing(answers, asks, meant), *_outside(answers, asks, meant)]
    if not complaints:
        return None
    questions = "; ".join(
        f"{name} ({' | '.join(map(short_line, choices))})" if choices else name for name, choices in asks.items()
    )
    message = f"nothing is recorded: {'; '.join(complaints)}. {what} asks {questions}"
    return Refusal(ResumeFault.NOT_WHOLE, message, {"commands": list(_lines_to_type(text, asks, meant, job_id))})


def is_choice(text: str, choices: Sequence[str]) -> bool:
    """Return whether the text is one of the choices, ignoring white space."""
    return " ".join(text.split()) in {" ".join(each.split()) for each in choices}


def _strange(text: str, asks: Asks, meant: Meant) -> Iterator[str]:
    """Yield a complaint for each unknown word that stands where an id should. A confirmed word passes, unless it looks
    like a mistyped id.
    """
    for name in strange_ids(text, list(asks)):
        near = nearest(name, list(asks))
        if near:
            yield f"`{name}` is not a question, did you mean `{near}`?"
        elif not meant.partial and not is_bare(text, list(asks)):
            yield f"`{name}` is not a question (a line that belongs to the answer above it begins with a blank)"


def _missing(answers: Answers, asks: Asks, meant: Meant) -> Iterator[str]:
    missing = [each for each in asks if each not in answers.by_id]
    if missing and not meant.partial:
        bare = " (several questions are open: each answer needs its id)" if not answers.by_id else ""
        yield f"nothing answers {', '.join(f'`{each}`' for each in missing)}{bare}"


def _outside(answers: Answers, asks: Asks, meant: Meant) -> Iterator[str]:
    for name, text in answers.by_id.items():
        if asks[name] and not meant.other and not is_choice(text, asks[name]):
            near = nearest(text, asks[name])
            hint = f", did you mean `{short_line(near)}`?" if near else ""
            # Half a secret would not be recognized: quote a text whole or not at all.
            quote = f"`{short_line(text, SHOWN)}`" if len(text) <= SHOWN else "a long text"
            yield f"{quote} is not one of the choices of `{name}`{hint}"


def _lines_to_type(text: str, asks: Asks, meant: Meant, job_id: str) -> Iterator[str]:
    """Yield the complete answer with its valid parts filled in, then the commands that confirm its irregularities."""
    ways = [meant]
    if not strange_ids(text, list(asks)):
        ways += [replace(meant, partial=True), replace(meant, other=True)]
    yield from dict.fromkeys(line_to_type(text, asks, way, job_id) for way in ways)


def line_to_type(text: str, asks: Asks, meant: Meant, job_id: str) -> str:
    """Return the command of an answer: its valid parts, the flags that they need, and placeholders for missing
    parts.
    """
    by_id = _put_right(text, asks).by_id
    chosen = {name for name, answer in by_id.items() if not asks[name] or is_choice(answer, asks[name])}
    good = {name: answer for name, answer in by_id.items() if meant.other or name in chosen}
    names = good if meant.partial and good else asks
    words = [_word(name, good.get(name)) for name in asks if name in names]
    partial, other = len(names) < len(asks), len(good) > len(chosen)
    return " ".join([f"service resume {job_id} answer", *words, *["--partial"] * partial, *["--other"] * other])


def _put_right(text: str, asks: Asks) -> Answers:
    """Parse an answer with mistyped ids corrected; a body without ids answers the only question."""
    ids = list(asks)
    slips = {name: near for name in strange_ids(text, ids) if (near := nearest(name, ids))}
    return parse(with_ids(text, slips), ids)


def _word(name: str, text: str | None) -> str:
    """Quote an answer for the shell; a missing or too long answer becomes a placeholder."""
    short = text and len(text) <= SHOWN and "\n" not in text
    return shlex.quote(f"{name}: {text}") if short else f'"{name}: <text>"'
