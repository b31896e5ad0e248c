"""People's answers and instructions for one attempt of a leg, as stored and as in its prompt (rulings F3, N6)."""

from workflows.text.fences import Fences
from workflows.text.invisible import one_line

PERSON = "a person with a say in this task"
_ASKED = "You asked: "
_ANSWER = "\nThe answer: "


def of_answer(question: str, answer: str) -> str:
    """Join a leg's own question and its answer. The question is one line, so that it can't forge the answer's start."""
    return f"{_ASKED}{one_line(question)}{_ANSWER}{answer}"


def block(said: str, fences: Fences) -> str:
    """Return fenced blocks, each under its author's name: the question is the leg's."""
    question, found, answer = said.removeprefix(_ASKED).partition(_ANSWER)
    if not (found and said.startswith(_ASKED)) or "\n" in question:
        return fences.block(said, PERSON)
    asked = fences.block(question, "you, in an earlier attempt")
    return f"The question:\n\n{asked}\n\nThe answer:\n\n{fences.block(answer, PERSON)}"
