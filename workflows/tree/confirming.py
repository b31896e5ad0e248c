"""What somebody who spoke to a pause is told: what was recorded of it, and where the tree stands now (ruling F5)."""

from collections.abc import Iterator, Sequence

from workflows.policy.answers import Answers, one_line
from workflows.policy.bounds import Refusal
from workflows.policy.verbs import No, Verb
from workflows.tree import round_view
from workflows.tree.commands import Command, Record
from workflows.tree.records import EventRecord
from workflows.tree.state import Coordinator, TreeState

TEXT_SHOWN = 300
_HEARD = ("resume_accepted", "resume_refused")


def recorded(chain: Coordinator, verb: Verb, text: str, said: Answers) -> list[str]:
    """What was taken of a person's words, a line each."""
    if verb is Verb.ANSWER:
        return list(_answers(chain, said))
    legs = ", ".join(leg.id for leg in round_view.escalated(chain))
    lines = {
        Verb.RETRY: f"run again: {legs}",
        Verb.CONTINUE: f"approved as failed: {legs}",
        Verb.ABORT: "the tree is summed up and ends",
        Verb.EXTEND: f"longer by {one_line(text)}",
    }
    words = f"instructions: {one_line(text, TEXT_SHOWN)}"
    return [lines[verb], *([words] if text and verb is not Verb.EXTEND else [])]


def _answers(chain: Coordinator, said: Answers) -> Iterator[str]:
    for each in chain.asking:
        text = said.by_id.get(each.id)
        yield f"{each.id}: {one_line(text, TEXT_SHOWN)}" if text else f"{each.id} stays unanswered"
    for name in said.unmatched:
        yield f"no question has the id {name}: what stands beside it is taken as it is"
    if said.guidance:
        yield f"guidance to the coordinator: {one_line(said.guidance, TEXT_SHOWN)}"


def verdict(state: TreeState, commands: Sequence[Command]) -> Refusal | str:
    """What the step that took a resume in made of it; a step that says nothing has heard it before."""
    events = (event for each in commands if isinstance(each, Record) for event in each.records.events)
    heard = next((each for each in events if each.kind in _HEARD), None)
    if heard is None:
        return Refusal(No.DUPLICATE, "this request has been carried out already")
    if heard.kind == "resume_refused":
        return Refusal(str(heard.data["why"]), heard.message)
    return _confirmed(state, heard)


def _confirmed(state: TreeState, heard: EventRecord) -> str:
    lines = heard.data["recorded"]
    shown = lines if isinstance(lines, list) else []
    return "\n".join([f"{heard.data['verb']} is accepted", *(f"  {each}" for each in shown), *_stands(state, heard)])


def _stands(state: TreeState, heard: EventRecord) -> Iterator[str]:
    """The round that was meant, then whoever still waits, then the tree."""
    meant = state.rounds[heard.job_id][int(str(heard.data["round"])) - 1]
    which = f"round {meant.number} of {heard.job_id}"
    yield (
        f"{which} waits until {round_view.clock(meant.expires_at)}"
        if meant.open
        else f"{which} is over: {meant.closed}"
    )
    waiting = [each for each in round_view.open_rounds(state) if each.coordinator_id != heard.job_id]
    yield from (f"still waiting: {each.commands[0]}" for each in waiting)
    if not meant.open and not waiting:
        yield "the tree is summed up" if state.finalize else "the tree goes on"
