"""An answer is taken whole or not at all where the surface can ask back (ruling F5)."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from workflows.contract.faults import nearest
from workflows.model.refusals import Refusal, ResumeFault
from workflows.policy.answers import Answers, is_bare, one_line, parse, strange_ids, with_ids

Asks = Mapping[str, Sequence[str]]
"""The questions of a round by id, with the choices each suggests."""

ASKS_BACK = frozenset({"cli", "bridge", "dashboard"})
"""The channels on which a tree takes an answer whole. Of a comment that is asked before it is sent (`resume`)."""

SHOWN = 200
"""Longer texts are not repeated in the line to type."""


@dataclass(frozen=True)
class Meant:
    """What the person says is no slip."""

    partial: bool = False
    """Questions are left unanswered on purpose."""
    other: bool = False
    """A text that is none of the choices is the answer."""


def refuse(text: str, asks: Asks, meant: Meant, job_id: str, what: str) -> Refusal | None:
    """Why nothing of this answer is recorded, with the lines to type instead; None when all of it is taken."""
    said = parse(text, list(asks))
    found = [*_strange(text, asks, meant), *_missing(said, asks, meant), *_outside(said, asks, meant)]
    if not found:
        return None
    questions = "; ".join(
        f"{name} ({' | '.join(map(one_line, choices))})" if choices else name for name, choices in asks.items()
    )
    message = f"nothing is recorded: {'; '.join(found)}. {what} asks {questions}"
    return Refusal(ResumeFault.NOT_WHOLE, message, {"commands": list(_lines(text, asks, job_id))})


def is_choice(text: str, choices: Sequence[str]) -> bool:
    """Exactly one of them, but for blanks."""
    return " ".join(text.split()) in {" ".join(each.split()) for each in choices}


def _strange(text: str, asks: Asks, meant: Meant) -> Iterator[str]:
    """What stands in an id's place; on purpose it may stand there only when it is no slip of one."""
    for name in strange_ids(text, list(asks)):
        near = nearest(name, list(asks))
        if near:
            yield f"`{name}` is no question, did you mean `{near}`?"
        elif not meant.partial and not is_bare(text, list(asks)):
            yield f"`{name}` is no question (a line that belongs to the answer above it begins with a blank)"


def _missing(said: Answers, asks: Asks, meant: Meant) -> Iterator[str]:
    missing = [each for each in asks if each not in said.by_id]
    if missing and not meant.partial:
        bare = " (several questions are open: each answer needs its id)" if not said.by_id else ""
        yield f"nothing answers {', '.join(f'`{each}`' for each in missing)}{bare}"


def _outside(said: Answers, asks: Asks, meant: Meant) -> Iterator[str]:
    for name, text in said.by_id.items():
        if asks[name] and not meant.other and not is_choice(text, asks[name]):
            near = nearest(text, asks[name])
            hint = f", did you mean `{one_line(near)}`?" if near else ""
            yield f"`{one_line(text)}` is none of the choices of `{name}`{hint}"


def _lines(text: str, asks: Asks, job_id: str) -> Iterator[str]:
    """First the whole answer, with what was typed well filled in; then how to say that it was meant."""
    said = _put_right(text, asks).by_id
    good = {each: found for each, found in said.items() if not asks[each] or is_choice(found, asks[each])}
    yield _line(job_id, (_word(each, good.get(each)) for each in asks))
    if strange_ids(text, list(asks)):
        return
    if good and len(good) < len(asks):
        yield _line(job_id, (_word(each, found) for each, found in good.items())) + " --partial"
    if len(good) < len(said):
        yield _line(job_id, (_word(each, said.get(each)) for each in asks)) + " --other"


def _put_right(text: str, asks: Asks) -> Answers:
    """As it reads when slips of an id are the id; a bare body belongs to the one question there is."""
    ids = list(asks)
    slips = {name: near for name in strange_ids(text, ids) if (near := nearest(name, ids))}
    return parse(with_ids(text, slips), ids)


def _line(job_id: str, words: Iterable[str]) -> str:
    return " ".join([f"service resume {job_id} answer", *words])


def _word(name: str, text: str | None) -> str:
    """As the shell takes it."""
    short = text and len(text) <= SHOWN and "\n" not in text
    return shlex.quote(f"{name}: {text}") if short else f'"{name}: <text>"'
