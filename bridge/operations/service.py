"""What every operation needs: the home, the settings, the store, opened when first used."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from activities.artifacts import Artifacts
from activities.settings.home import Home

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from activities.settings.model import Settings


@dataclass(frozen=True)
class Service:
    """One service home, as a process sees it."""

    home: Home

    @classmethod
    def locate(cls) -> "Service":
        """The service in `SERVICE_HOME`."""
        return cls(Home.locate())

    @cached_property
    def settings(self) -> "Settings":
        from activities.settings.load import load_settings

        return load_settings(self.home)

    @cached_property
    def store(self) -> "Engine":
        from activities.store.database import open_store

        return open_store(self.home, self.settings.store.url)

    @property
    def artifacts(self) -> Artifacts:
        return Artifacts(self.home.artifacts)
