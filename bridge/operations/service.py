"""The base of every operation: the home, the settings, the store; each is opened at its first use."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from activities.redaction.kept_secrets import KeptSecrets
from activities.settings.home import Home
from activities.store.artifacts import Artifacts

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from activities.settings.in_use import SettingsTable
    from activities.settings.load import Loaded
    from activities.settings.model import Settings


@dataclass(frozen=True)
class Service:
    """One service home, as a process sees it."""

    home: Home
    migrates: bool = True
    """True to migrate an older store when it is opened; False to raise StoreOlderError, as for commands that only
    read.
    """
    member: str = "command"
    """The name of this process, which determines its share of the store's connections
    (`activities.store.connections`).
    """

    @classmethod
    def locate(cls, member: str = "command") -> "Service":
        """Return the service of `SERVICE_HOME`."""
        return cls(Home.locate(), member=member)

    @property
    def settings(self) -> "Settings":
        return self._loaded.settings

    @property
    def reading(self) -> "SettingsTable":
        """Return the settings file and environment as this process read them (ruling K4)."""
        return self._loaded.reading

    @cached_property
    def _loaded(self) -> "Loaded":
        from activities.settings.load import load

        return load(self.home)

    @cached_property
    def store(self) -> "Engine":
        from activities.store.connections import Member, share
        from activities.store.database import open_store

        settings = self.settings.store
        connections = share(settings.pool, Member(self.member))
        return open_store(self.home, settings.url, connections=connections, migrate=self.migrates)

    @property
    def kept(self) -> KeptSecrets:
        if not self.settings.store.url:
            return KeptSecrets(self.home.root)
        from activities.store.secret_hosts import kept_secrets

        return kept_secrets(self.home, self.settings)

    @property
    def artifacts(self) -> Artifacts:
        if not self.settings.store.url:
            return Artifacts(self.home.artifacts)
        from activities.store.shared_artifacts import artifacts_of

        return artifacts_of(self.home, self.settings, self.store)
