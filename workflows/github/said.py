"""The commands of comments, as values (ruling L4)."""

from dataclasses import dataclass

from workflows.contract.models import Action

COMMANDS = ("resume", "ask", "review", "implement", "kill", "retry", "status")
"""The words allowed after `/service`, which `[github].commands` can permit."""

ALLOWED = ("resume", "status")
"""The default of `[github].commands`."""


@dataclass(frozen=True, slots=True)
class Resume:
    """`/service resume [<job>] <verb> [...]`; text on the lines below belongs to it (ruling F7)."""

    job: str
    """Empty for the only open round of the thread."""
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
class Start:
    """`/service ask|review|implement AGENT ...`"""

    action: Action
    agent: str
    text: str

    @property
    def word(self) -> str:
        """The word after `/service`."""
        return self.action.value


@dataclass(frozen=True, slots=True)
class Kill:
    """`/service kill [<job>]`"""

    job: str = ""

    @property
    def word(self) -> str:
        """The word after `/service`."""
        return "kill"


@dataclass(frozen=True, slots=True)
class Retry:
    """`/service retry <job>`: runs the failed job again, like `service job retry`."""

    job: str

    @property
    def word(self) -> str:
        """The word after `/service`."""
        return "retry"


@dataclass(frozen=True, slots=True)
class Status:
    """`/service status`"""

    @property
    def word(self) -> str:
        """The word after `/service`."""
        return "status"


@dataclass(frozen=True, slots=True)
class Unknown:
    """`/service` with an unknown word, and the nearest command."""

    word: str
    nearest: str = ""


Said = Resume | Start | Kill | Retry | Status | Unknown
