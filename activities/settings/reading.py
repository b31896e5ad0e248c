"""What a process has read of the settings, so that others can say what it does not know yet (ruling K4)."""

import hashlib
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict

from activities.settings import toml


class File(BaseModel):
    """The file that was read: where, its digest, when. None is the digest of a file that is not there."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    path: str
    digest: str | None
    read_at: float

    @classmethod
    def of(cls, path: Path, content: bytes | None) -> Self:
        digest = None if content is None else hashlib.sha256(content).hexdigest()
        return cls(path=str(path), digest=digest, read_at=time.time())


@dataclass(frozen=True)
class Reading:
    """Every setting by its path, in the form the file takes, and where each comes from."""

    file: File
    values: Mapping[toml.Path, object]
    typed: Mapping[toml.Path, object]
    """Those that somebody wrote, as they wrote them: a day may be `1d` or `24h`."""
    origins: Mapping[toml.Path, str]

    def origin(self, path: toml.Path) -> str:
        """Where a value comes from."""
        return self.origins.get(path, "default")

    def told(self, sections: Collection[str] | None = None) -> "Told":
        """What a process says of it: all sections, or only those that concern it."""
        kept = {path: given for path, given in self.values.items() if sections is None or path[0] in sections}
        return Told(file=self.file, values={toml.dotted(path): toml.value(given) for path, given in kept.items()})


class Told(BaseModel):
    """What a running process says it has read, in its own file in the home; names and values as they are typed."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    file: File
    values: dict[str, str]


class Change(BaseModel):
    """A setting that a process still has otherwise; None where it knows of none, or where there is none any more."""

    model_config = ConfigDict(frozen=True)

    key: str
    here: str | None
    there: str | None


def changes(now: Told, before: Told) -> tuple[Change, ...]:
    """Every setting that differs."""
    keys = dict.fromkeys([*now.values, *before.values])
    return tuple(
        Change(key=key, here=now.values.get(key), there=before.values.get(key))
        for key in keys
        if now.values.get(key) != before.values.get(key)
    )
