"""Complete answers: where the surface can ask back, an answer is taken completely or not at all (ruling F5)."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from workflows.contract.faults import nearest
from workflows.model.errors import Refusal, ResumeFault
from workflows.policy.answers import Answers, is_bare, one_line, parse, strange_ids, with_ids

Asks = Mapping[str, Sequence[str]]
"""The questions of a round by id, with their suggested choices."""

ASKS_BACK = frozenset({"cli", "bridge", "dashboard"})
"""Channels on which a tree requires a complete answer. Comments are checked before they are sent (`resume`)."""

SHOWN = 200
"""Maximum length of an answer that the suggested line repeats."""


@dataclass(frozen=True)
class Meant:
    """Deviations that the person confirms as intended."""

    partial: bool = False
    """True if questions are left unanswered on purpose."""
    other: bool = False
    """True if an answer may differ from the choices."""


def refuse(text: str, asks: Asks, meant: Meant, job_id: str, what: str) -> Refusal | None:
    """Return why this answer is refused as a whole, with the lines to type instead, or None."""
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
    """Return whether the text is one of the choices, white space aside."""
    return " ".join(text.split()) in {" ".join(each.split()) for each in choices}


def _strange(text: str, asks: Asks, meant: Meant) -> Iterator[str]:
    """Yield unknown words in the place of an id; a deliberate one is accepted unless it looks like a mistyped id."""
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
    """Yield the complete answer with the valid parts filled in, then the lines that confirm the deviations."""
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
    """Parse with mistyped ids corrected; a bare body answers the only question."""
    ids = list(asks)
    slips = {name: near for name in strange_ids(text, ids) if (near := nearest(name, ids))}
    return parse(with_ids(text, slips), ids)


def _line(job_id: str, words: Iterable[str]) -> str:
    return " ".join([f"service resume {job_id} answer", *words])


def _word(name: str, text: str | None) -> str:
    """Quote an answer for the shell."""
    short = text and len(text) <= SHOWN and "\n" not in text
    return shlex.quote(f"{name}: {text}") if short else f'"{name}: <text>"'
