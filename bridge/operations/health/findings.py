"""What `service doctor` finds: one line for each thing that was looked at."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad it is. Only what is wrong makes `service doctor` fail."""

    OK = "ok"
    WARNING = "warning"
    WRONG = "wrong"


@dataclass(frozen=True)
class Finding:
    """One line: what was looked at, how it is, and what to type when it is not well."""

    about: str
    level: Level
    says: str
    fix: str = ""
