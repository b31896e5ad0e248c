"""An object store by its URL: S3, GCS, Azure, or a folder that several hosts share. Its library is an extra."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING

from workflows.model.errors import UnreachableError, UsageError

if TYPE_CHECKING:
    from obstore.store import ObjectStore

RETRIES, PATIENCE = 4, timedelta(seconds=20)
"""Limits of the retries of one request."""


class ObjectsAwayError(UnreachableError):
    """The object store does not answer, or refuses the request."""


@dataclass(frozen=True)
class Objects:
    """The object store at a URL. Names are paths below the URL."""

    url: str

    def put(self, name: str, content: bytes) -> None:
        """Store an object, in place of an older one."""
        try:
            with self._reached():
                self._store.put(name, content)
        except FileNotFoundError as error:  # the bucket
            raise self._away(error) from None

    def get(self, name: str) -> Iterator[bytes]:
        """Yield an object in parts; raise FileNotFoundError if it is missing."""
        with self._reached():
            yield from map(bytes, self._store.get(name))

    def has(self, name: str) -> bool:
        """Return whether an object exists."""
        try:
            with self._reached():
                self._store.head(name)
        except FileNotFoundError:
            return False
        return True

    def require(self) -> None:
        """Raise ServiceError if the store can't be read."""
        with self._reached():
            next(iter(self._store.list(chunk_size=1)), None)

    def delete(self, name: str) -> None:
        """Remove an object; no-op if it is missing."""
        try:
            with self._reached():
                self._store.delete(name)
        except FileNotFoundError:
            return

    @property
    def _store(self) -> "ObjectStore":
        return _opened(self.url)

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """Raise obstore's and the disk's errors as one of ours."""
        try:
            yield
        except FileNotFoundError:
            raise
        except Exception as error:
            if not isinstance(error, OSError) and type(error).__module__ != "obstore.exceptions":
                raise
            raise self._away(error) from None

    def _away(self, error: Exception) -> ObjectsAwayError:
        message = str(error).partition("\n")[0].partition(": <?xml")[0]
        return ObjectsAwayError(f"the object store {self.url} cannot be used: {message}", "service doctor")


@cache
def _opened(url: str) -> "ObjectStore":
    """Open the object store at a URL, with credentials from the environment. A shared folder must exist: one that is
    not mounted would be a folder of this host alone.
    """
    try:
        from obstore.store import from_url
    except ModuleNotFoundError:
        why = f"[artifacts].url needs the library obstore, which is not installed for {sys.executable}"
        raise UsageError(why, f"{sys.executable} -m pip install 'delegation-service[objects]'") from None
    if url.startswith("file:"):
        return _shared_folder(url)
    backoff = {"init_backoff": timedelta(milliseconds=200), "max_backoff": timedelta(seconds=5), "base": 2}
    retries = {"max_retries": RETRIES, "retry_timeout": PATIENCE, "backoff": backoff}
    limits = {"connect_timeout": "5s", "timeout": "60s", "allow_http": True}
    try:
        return from_url(url, client_options=limits, retry_config=retries)  # type: ignore[call-overload, no-any-return]
    except Exception as error:
        message = str(error).partition("\n")[0]
        raise UsageError(f"[artifacts].url {url} cannot be used: {message}", "service config show --origin") from None


def _shared_folder(url: str) -> "ObjectStore":
    from obstore.store import from_url

    try:
        return from_url(url)
    except Exception:
        folder = url.removeprefix("file://")
        why = f"the folder of [artifacts].url, {folder}, is missing on this host"
        raise ObjectsAwayError(why, f"mount it, or: mkdir -p {folder}") from None
