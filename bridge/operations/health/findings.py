"""The findings of `service doctor`: one line for each check."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """The severity of a finding. Only `WRONG` makes `service doctor` fail."""

    OK = "ok"
    WARNING = "warning"
    WRONG = "wrong"


@dataclass(frozen=True)
class Finding:
    """One line: the check, its outcome, and the command to type when it is not well."""

    about: str
    level: Level
    says: str
    fix: str = ""
