"""Commands in a comment: lines that begin with `/service` and are the person's own words (rulings F7, L4).

A line counts only if it begins with `/service`, followed by a blank or the line's end, and only outside code, quotes,
HTML and HTML comments (see `comment`). The lines below belong to the command, up to the next command.

Lookalikes do not count: a fullwidth slash, a no-break space or a zero-width character before or behind `/service`, an
indented line, a line behind another line separator than CR and LF. A line with a zero-width, bidirectional or other
invisible character is ignored as a whole; only the joiners that some scripts need are allowed in a text. So a person
never gives a command that they could not see.
"""

import re
import shlex
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from workflows.contract.faults import nearest
from workflows.contract.models import Action
from workflows.github.comment import read_lines
from workflows.policy.answers import Verb

COMMANDS = ("resume", "ask", "review", "implement", "kill", "retry", "status")
"""The words allowed after `/service`, which `[github].commands` can permit."""


@dataclass(frozen=True, slots=True)
class ResumeCommand:
    """`/service resume [<job>] <verb> [...]`; text on the lines below belongs to it (ruling F7)."""

    job: str
    """Empty means the only open round of the thread."""
    verb: str
    """The verb as written; the round decides whether it accepts it."""
    text: str = ""
    partial: bool = False
    other: bool = False

    @property
    def word(self) -> str:
        """The word after `/service`."""
        return "resume"


@dataclass(frozen=True, slots=True)
class StartCommand:
    """`/service ask|review|implement AGENT ...`"""

    action: Action
    agent: str
    text: str

    @property
    def word(self) -> str:
        """The word after `/service`."""
        return self.action.value


@dataclass(frozen=True, slots=True)
class KillCommand:
    """`/service kill [<job>]`"""

    job: str = ""

    @property
    def word(self) -> str:
        """The word after `/service`."""
        return "kill"


@dataclass(frozen=True, slots=True)
class RetryCommand:
    """`/service retry <job>`: runs the failed job again, like `service job retry`."""

    job: str

    @property
    def word(self) -> str:
        """The word after `/service`."""
        return "retry"


@dataclass(frozen=True, slots=True)
class StatusCommand:
    """`/service status`"""

    @property
    def word(self) -> str:
        """The word after `/service`."""
        return "status"


@dataclass(frozen=True, slots=True)
class UnknownCommand:
    """`/service` with an unknown word, and the known word that is nearest to it."""

    word: str
    nearest: str = ""


CommentCommand = ResumeCommand | StartCommand | KillCommand | RetryCommand | StatusCommand | UnknownCommand


MOST = 10
"""The most commands of one comment that count; further ones are ignored."""

LONGEST = 70_000
"""GitHub accepts no comment of more than 65 536 characters."""

_LINE_END = re.compile("\r\n?|\n")
_COMMAND = re.compile(r"/service(?=[ \t]|$)")
_BLANKS = re.compile(r"[ \t]+")
_PLAIN = re.compile(r"[!-~]*")
_JOINERS = "\u200c\u200d"
_ARGUMENT = r"(?:\"[^\"]*\"|'[^']*')"
_ARGUMENTS = re.compile(rf"{_ARGUMENT}(?:[ \t]+{_ARGUMENT})+")
_NAMED = re.compile(r"[\w.-]{1,64}: ")
_FLAGS = {"--partial", "--other"}


@dataclass(frozen=True, slots=True)
class Spoken:
    """A parsed command, and the number of its first line in the comment."""

    line: str
    command: CommentCommand


def commands_in(body: str) -> tuple[CommentCommand, ...]:
    """Return the commands of a comment, in order."""
    return tuple(spoken.command for spoken in spoken_in(body))


def spoken_in(body: str) -> tuple[Spoken, ...]:
    """Return the commands of a comment, each with its line, in their order."""
    lines = _LINE_END.split(body) if len(body) <= LONGEST else []
    wanted = [number for number, line in enumerate(lines) if _COMMAND.match(line) and not _hides(line)]
    if not wanted:
        return ()
    reading = read_lines(lines, wanted)
    ends = [*reading.spoken[1:], len(lines)]
    spoken: list[Spoken] = []
    for start, end in zip(reading.spoken[:MOST], ends, strict=False):
        below = [lines[number] for number in range(start + 1, end) if number not in reading.hidden]
        command = _parse(lines[start], below)
        spoken += [Spoken(lines[start], command)] if command else []
    return tuple(spoken)


def _hides(line: str) -> bool:
    """Return whether the line contains an invisible or bidirectional control character."""
    return any(
        unicodedata.category(letter) in ("Cc", "Cf", "Co", "Cs", "Zl", "Zp")
        for letter in line
        if not letter.isascii() or letter < " " or letter == "\x7f"
        if letter != "\t" and letter not in _JOINERS
    )


def _parse(line: str, below: Sequence[str]) -> CommentCommand | None:
    """Parse a command; None if one of its own words contains lookalike characters."""
    _, rest = _first(line)
    word, rest = _first(rest)
    match word:
        case "resume":
            command = _resume(rest, below)
            return command if _plain(command.job) and _plain(command.verb) else None
        case Action.ASK | Action.REVIEW | Action.IMPLEMENT:
            agent, rest = _first(rest)
            return StartCommand(Action(word), agent, _text(rest, below)) if _plain(agent) else None
        case "kill" | "retry":
            job, _ = _first(rest)
            kind = KillCommand if word == "kill" else RetryCommand
            return kind(job) if _plain(job) else None
        case "status":
            return StatusCommand()
        case _:
            return UnknownCommand(word, nearest(word, COMMANDS) or "") if _plain(word) else None


def _resume(rest: str, below: Sequence[str]) -> ResumeCommand:
    """Parse a resume. The job is optional, and is recognised by the form of a job id."""
    job, verb = "", ""
    word, rest = _first(rest)
    if word.startswith("job-"):
        job, (verb, rest) = word, _first(rest)
    else:
        verb = word
    if verb == Verb.EXTEND:
        return ResumeCommand(job, verb, rest)
    if verb != Verb.ANSWER:
        return ResumeCommand(job, verb, _text(rest, below))
    rest, flags = _flags(rest)
    text = _text(_one_a_line(rest), below)
    return ResumeCommand(job, verb, text, partial="--partial" in flags, other="--other" in flags)


def _flags(rest: str) -> tuple[str, set[str]]:
    """Split flags from the start or the end of the command line's text."""
    words, flags = _BLANKS.split(rest), set[str]()
    while words and words[0] in _FLAGS:
        flags.add(words[0])
        rest, words = rest[len(words[0]) :].lstrip(" \t"), words[1:]
    while words and words[-1] in _FLAGS:
        flags.add(words[-1])
        rest, words = rest[: -len(words[-1])].rstrip(" \t"), words[:-1]
    return rest, flags


def _one_a_line(rest: str) -> str:
    """Convert answers in the shell's form, `"a: x" 'b: y'`, to one answer per line, so that the command in a refusal
    can be copied into a comment.
    """
    if _ARGUMENTS.fullmatch(rest):
        return "\n".join(argument[1:-1] for argument in re.findall(_ARGUMENT, rest))
    if not rest.startswith(("'", '"')):
        return rest
    try:
        words = shlex.split(rest)
    except ValueError:
        return rest
    return "\n".join(words) if all(map(_NAMED.match, words)) else rest


def _first(text: str) -> tuple[str, str]:
    word, *rest = _BLANKS.split(text.strip(" \t"), maxsplit=1)
    return word, rest[0] if rest else ""


def _plain(word: str) -> bool:
    return _PLAIN.fullmatch(word) is not None


def _text(rest: str, below: Sequence[str]) -> str:
    return "\n".join([rest, *below]).strip()
