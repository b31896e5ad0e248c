"""People's answers and instructions in prompts, each quoted under its author's name (rulings F3, F5, N6)."""

from workflows.model.briefs import ContinuationBrief
from workflows.text.invisible import one_line
from workflows.text.quoted_data import Fences, inline

PERSON = "a person with a say in this task"
_ASKED = "You asked: "
_ANSWER = "\nThe answer: "


def human_answers(brief: ContinuationBrief, fences: Fences) -> str:
    """Return every question with its answer, if any, and all other text that a person wrote (ruling F5)."""
    parts = []
    if brief.answers:
        answered = any(answer.text is not None for answer in brief.answers)
        who = "A person with a say in this task answered." if answered else "People were asked, and nobody answered."
        parts.append(who)
    for answer in brief.answers:
        by = f", asked by leg {inline(answer.leg)}" if answer.leg else ""
        asker = f"leg {answer.leg}" if answer.leg else "you, in an earlier run"
        parts.append(f"**Question {inline(answer.id)}**{by}\n\n{fences.block(answer.question, asker)}")
        text = answer.text
        parts.append("Left unanswered." if text is None else f"Answer:\n\n{fences.block(text, PERSON)}")
    if brief.unmatched:
        names = ", ".join(inline(name) for name in brief.unmatched)
        parts.append(f"No question has the id {names}: take what stands beside it as additional guidance.")
    if brief.guidance:
        what = "Additional guidance, which matched no question" if brief.answers else "Instructions of a person"
        parts.append(f"{what}:\n\n{fences.block(brief.guidance, PERSON)}")
    return "\n\n".join(parts)


def answer_to(question: str, answer: str) -> str:
    """Join a leg's question and its answer. The question becomes one line, so that it can't imitate the answer's
    heading.
    """
    return f"{_ASKED}{one_line(question)}{_ANSWER}{answer}"


def said_block(words: str, fences: Fences) -> str:
    """Return a person's text in a fenced block. If it answers a leg's question, return both in fenced blocks, each
    under its author's name.
    """
    question, mark, answer = words.removeprefix(_ASKED).partition(_ANSWER)
    if not (mark and words.startswith(_ASKED)) or "\n" in question:
        return fences.block(words, PERSON)
    asked = fences.block(question, "you, in an earlier attempt")
    return f"The question:\n\n{asked}\n\nThe answer:\n\n{fences.block(answer, PERSON)}"
