"""The settings that a process has read, so that other processes can show which later changes it lacks (ruling K4)."""

import hashlib
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict

from activities.settings import toml


class File(BaseModel):
    """The settings file that was read: path, digest, time. The digest of a missing file is None."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    path: str
    digest: str | None
    read_at: float

    @classmethod
    def of(cls, path: Path, content: bytes | None) -> Self:
        digest = None if content is None else hashlib.sha256(content).hexdigest()
        return cls(path=str(path), digest=digest, read_at=time.time())


@dataclass(frozen=True)
class SettingsTable:
    """Every setting by its path, in the form the file takes, and its origin."""

    file: File
    values: Mapping[toml.Path, object]
    typed: Mapping[toml.Path, object]
    """Values that somebody wrote, as they wrote them: a day may be `1d` or `24h`."""
    origins: Mapping[toml.Path, str]

    def origin(self, path: toml.Path) -> str:
        """Return the origin of a setting's value."""
        return self.origins.get(path, "default")

    def in_use(self, sections: Collection[str] | None = None) -> "SettingsInUse":
        """Return the values in the form of a process's file: of all sections, or only of those that concern the
        process.
        """
        kept = {path: given for path, given in self.values.items() if sections is None or path[0] in sections}
        return SettingsInUse(
            file=self.file, values={toml.dotted_name(path): toml.value(given) for path, given in kept.items()}
        )


class SettingsInUse(BaseModel):
    """The settings that a running process has read, in its own file in the home; names and values as they are typed."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    file: File
    values: dict[str, str]


class Change(BaseModel):
    """A setting of which a running process has an older value; None where it is not set."""

    model_config = ConfigDict(frozen=True)

    key: str
    here: str | None
    there: str | None


def changes(now: SettingsInUse, before: SettingsInUse) -> tuple[Change, ...]:
    """Return every setting that differs."""
    keys = dict.fromkeys([*now.values, *before.values])
    return tuple(
        Change(key=key, here=now.values.get(key), there=before.values.get(key))
        for key in keys
        if now.values.get(key) != before.values.get(key)
    )
