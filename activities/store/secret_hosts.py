"""Kept secrets on several hosts (ruling Q2): each stays in the home that has it, and the store names that host."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import Engine, select

from activities.redaction.kept_secrets import KeptSecrets
from activities.settings.home import Home
from activities.settings.model import Settings
from activities.store import schema
from activities.store.database import open_store
from activities.store.queries import insert_new, one
from workflows.model.errors import RefusedError


class SecretElsewhereError(RefusedError):
    """A text needs a secret that another host keeps."""


def kept_secrets(home: Home, settings: Settings) -> KeptSecrets:
    """Return the kept secrets of a home, with the record of their hosts where several share a store."""
    return KeptSecrets(home.root, SecretHosts(home, settings) if settings.store.url else None)


@dataclass(frozen=True)
class SecretHosts:
    """The hosts of kept secrets, in a store that the hosts share. Calls are rare, since few secrets are new or missing,
    so each call opens the store.
    """

    home: Home
    settings: Settings

    def add(self, names: Iterable[str]) -> None:
        """Record that this host keeps the secrets of these names."""
        folder = KeptSecrets(self.home.root).folder
        rows = [{"name": name, "host": self.settings.host, "path": str(folder / name)} for name in names]
        with self._store() as store:
            insert_new(store, schema.kept_secrets, *rows)

    def refuse(self, name: str) -> None:
        """Raise SecretElsewhereError with the command that brings the secret here, if another host keeps it."""
        table = schema.kept_secrets.c
        query = select(table.host, table.path).where(table.name == name, table.host != self.settings.host)
        with self._store() as store:
            row = one(store, query.order_by(table.host).limit(1))
        if row is None:
            return
        folder = KeptSecrets(self.home.root).folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        raise SecretElsewhereError(
            f"the text needs a secret (redacted-{name}) that only the host {row.host} keeps, and this is "
            f"{self.settings.host}",
            f"scp -p {row.host}:{row.path} {folder}/",
        )

    @contextmanager
    def _store(self) -> Iterator[Engine]:
        store = open_store(self.home, self.settings.store.url, connections=1)
        try:
            yield store
        finally:
            store.dispose()
