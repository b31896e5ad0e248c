"""The last sections of a continuation's prompt: instructions for each kind, and the effects of decisions."""

from collections.abc import Collection

from workflows.contract.models import Action, SynthesisRule
from workflows.model.briefs import ContinuationBrief
from workflows.model.states import Continuation
from workflows.policy.prompts.correction import how_to_correct

TITLES = {
    Continuation.NONE: "Continuation",
    Continuation.NORMAL: "Continuation: your delegations have ended",
    Continuation.CORRECTIVE: "Continuation: something has to be put right first",
    Continuation.REPLAN: "Continuation: verification failed, make a new plan",
    Continuation.ANSWERED: "Continuation: a person has answered",
    Continuation.FINALIZE: "Final continuation: sum up, nothing more is started",
}

_DECIDE = {
    Action.ASK: (
        "`approved` when you have answered, the answer in `summary` and `findings`; `blocked` when you can't without"
        " something from outside, named in `needs`; `skipped` when there is nothing to answer."
    ),
    Action.REVIEW: (
        "`approved` when nothing has to change before a merge; `changes_requested` when something has to, each issue"
        " in `findings` with its file, its line and why; `blocked` when you can't judge it, the reason in `needs`."
    ),
    Action.IMPLEMENT: (
        "`implemented` when the change is made; `blocked` when you can't go on without something from outside, named in"
        " `needs`; `failed` when you tried and it does not work; `skipped` when there was nothing to change."
    ),
}
_DELEGATED = "`implemented` when the goal asked for changes, and the line has them; "
_VERIFY = (
    "You are the check of this work. `approved` (or `implemented`) lets it pass; `changes_requested`, `blocked` or"
    " `failed` sends it back with your findings, for repair; `skipped` abstains."
)
_RUNS = (
    " Run build and tests yourself, and decide by what you saw, not by what summaries say. If you could not run them,"
    " it is not checked: `blocked`."
)
_READS = (
    " You can't run builds or tests here: judge by reading the code and its diff, not by what summaries say, and say in"
    " your summary that nothing was run."
)
_VOTE = "All jobs of this set vote: one that fails or decides `changes_requested` stops the task."
_QUORUM = (
    "Of this set at least {quorum} must decide `approved` or `implemented`, else the task stops; `skipped` abstains."
)

_AGAIN = (
    "A leg that failed may be issued again with a narrower prompt, another approach or a stronger `model`; a set that"
    " is the same as one before is refused as a loop."
)
_NORMAL = f"""\
Every leg of your last set has ended. Judge what came out of it against the goal, then do one of these:

1. **The goal is reached**, or your assignment within it: decide, with a summary of what was done and no delegations. \
That ends your part.
2. **Work is left**: return `delegations` for that work only. Give each leg what it needs in its prompt: of this one \
it sees the goal alone, and what its `deps` came to. {_AGAIN}
3. **It cannot go on** without something only the outside can give: return `blocked` and name it in `needs`.

States, decisions and observed files are facts. Summaries are what agents say of themselves; where the two differ, \
have it checked. The line is the branch that collects the work of this task: each implement leg that succeeded is \
merged into it, and the next legs begin from it, so nothing has to be done again. "Where you are" names the legs that \
were left out because they conflict, and what brings each onto it. A person takes the line over when the task has \
ended: say in your summary what is on it, and what is not."""

_REPLAN = """\
The verify legs did not pass, or could not run. This is replan attempt {attempt} of {attempts}; when the attempts are \
used up, the task is finalized as it stands.

1. Take each finding of the verify legs above as a fact to be dealt with, not as an opinion to be answered.
2. Return `delegations` that repair exactly these findings, do what failed legs left undone, and bring onto the line \
what "Where you are" names as left out. Keep what already works: the repairing legs begin from the line, and see the \
work that was checked. {again}
3. Put a verify leg into the set again: `"synthesis_rule": "verify"`, `deps` on the repairing legs, another runtime \
than theirs where there is one, with the policy that lets its program run builds and tests (see "Delegating"): it \
re-runs them itself. It works in a throwaway folder.
4. Only if a finding cannot be repaired by any leg: return `blocked` and name it in `needs`."""

_ANSWERED = """\
A person has answered; the answers stand at the top and settle what they speak of.

1. Go on towards the goal in their light. Do not ask again what has been answered; what was left unanswered is yours \
to decide, and your summary says how you did.
2. If delegations are listed above as not dispatched, none of them ran: return those that still make sense, changed \
where the answers change them, and drop the rest.
3. If nothing is left to do, return your result without delegations."""

_FINALIZE = """\
This is the last job of the task. Nothing runs after it: delegations and questions you return are ignored.

1. Return the best final result there can be from what is above.
2. `decision`: `implemented` or `approved` only if the goal is reached; otherwise `blocked` when something outside is \
missing, `failed` when the work itself did not succeed, `changes_requested` when a review found what has to change.
3. `summary`: what is done, what is not, and why the task ended here. The line holds the work of all legs that \
succeeded and did not conflict; name what is not on it, with the branches and pull requests that hold it, so that a \
person can go on from there.
4. `needs`: what it would take to finish."""


def ask(brief: ContinuationBrief) -> str:
    """Return the instructions of this continuation."""
    approved = "A person has seen the failures above and said to go on in spite of them.\n\n" if brief.approved else ""
    return f"{approved}{_text(brief)}"


def decisions(
    action: Action,
    rules: Collection[SynthesisRule] = (),
    quorum: int | None = None,
    *,
    delegated: bool = False,
    commands: bool = True,
) -> str:
    """Return the meaning and effects of a job's possible decisions, depending on what it has delegated and may run."""
    lines = [f"{_DELEGATED if delegated and action is not Action.IMPLEMENT else ''}{_DECIDE[action]}"]
    if SynthesisRule.VERIFY in rules:
        lines.append(f"{_VERIFY}{_RUNS if commands else _READS}")
    if SynthesisRule.VOTE in rules:
        lines.append(_VOTE)
    if SynthesisRule.QUORUM in rules and quorum is not None:
        lines.append(_QUORUM.format(quorum=quorum))
    return "\n".join(lines)


def _text(brief: ContinuationBrief) -> str:
    match brief.flavour:
        case Continuation.NONE | Continuation.NORMAL:
            return _NORMAL
        case Continuation.CORRECTIVE:
            return how_to_correct(brief)
        case Continuation.REPLAN:
            return _REPLAN.format(attempt=brief.attempt, attempts=brief.attempts, again=_AGAIN)
        case Continuation.ANSWERED:
            return _ANSWERED
        case Continuation.FINALIZE:
            return _FINALIZE
