"""What people said for one attempt of a leg, as it travels and as it stands in the prompt (rulings F3, N6)."""

from workflows.contract.fences import Fences
from workflows.contract.visible import one_line

PERSON = "a person with a say in this task"
_ASKED = "You asked: "
_ANSWER = "\nThe answer: "


def of_answer(question: str, answer: str) -> str:
    """A leg's own question with its answer. The question is one line: whatever it says, the answer begins behind it."""
    return f"{_ASKED}{one_line(question)}{_ANSWER}{answer}"


def block(said: str, fences: Fences) -> str:
    """In blocks, each under the name of who wrote it: the question is the leg's."""
    question, found, answer = said.removeprefix(_ASKED).partition(_ANSWER)
    if not (found and said.startswith(_ASKED)) or "\n" in question:
        return fences.block(said, PERSON)
    asked = fences.block(question, "you, in an earlier attempt")
    return f"The question:\n\n{asked}\n\nThe answer:\n\n{fences.block(answer, PERSON)}"
