"""What a comment can command, as values (ruling L4)."""

from dataclasses import dataclass

from workflows.contract.models import Action

COMMANDS = ("resume", "ask", "review", "implement", "kill", "retry", "status")
"""The words that may follow `/service`, and that `[github].commands` may allow."""

ALLOWED = ("resume", "status")
"""What `[github].commands` allows where it is not set."""


@dataclass(frozen=True, slots=True)
class Resume:
    """`/service resume [<job>] <verb> [...]`; text on the lines below belongs to it (ruling F7)."""

    job: str
    """Empty where the only open round of the thread is meant."""
    verb: str
    """As it was written; whether the round takes it is for the round to say."""
    text: str = ""
    partial: bool = False
    other: bool = False

    @property
    def word(self) -> str:
        """What stands behind `/service`."""
        return "resume"


@dataclass(frozen=True, slots=True)
class Start:
    """`/service ask|review|implement AGENT ...`"""

    action: Action
    agent: str
    text: str

    @property
    def word(self) -> str:
        """What stands behind `/service`."""
        return self.action.value


@dataclass(frozen=True, slots=True)
class Kill:
    """`/service kill [<job>]`"""

    job: str = ""

    @property
    def word(self) -> str:
        """What stands behind `/service`."""
        return "kill"


@dataclass(frozen=True, slots=True)
class Retry:
    """`/service retry <job>`: the failed job runs again, as by `service job retry`."""

    job: str

    @property
    def word(self) -> str:
        """What stands behind `/service`."""
        return "retry"


@dataclass(frozen=True, slots=True)
class Status:
    """`/service status`"""

    @property
    def word(self) -> str:
        """What stands behind `/service`."""
        return "status"


@dataclass(frozen=True, slots=True)
class Unknown:
    """`/service` with another word, and the command that may be meant."""

    word: str
    nearest: str = ""


Said = Resume | Start | Kill | Retry | Status | Unknown
