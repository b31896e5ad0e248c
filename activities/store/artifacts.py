"""The artifact store: content that is too large for a history or a row, stored by digest.

No library: a file in a folder, written atomically under its digest, is all that one host needs. Artifacts are shared,
so the clean-up removes them by the time of their last use. Writers and the clean-up share a lock, so that no artifact
is removed just before it is used. Where several hosts share a store, the folder is a cache of `shared_artifacts`
(ruling Q2).
"""

import contextlib
import fcntl
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from activities.redaction.kept_secrets import KeptSecrets, SecretRecord
from activities.runs.regular_files import open_to_append, private_folder
from workflows.model.errors import NotFoundError
from workflows.model.long_texts import Text
from workflows.model.workers import Worker
from workflows.text.quoted_data import Fences, write_fenced

LOCK = "lock"
YOUNG_SECONDS = 3600.0
"""An artifact used within this time is not touched again."""
MARGIN = 2 * YOUNG_SECONDS
"""Safety margin: an artifact is removed only if it is this much older than anything that may need it."""


@contextmanager
def using(root: Path) -> Iterator[None]:
    """Take the shared lock: others may use artifacts, but none is removed."""
    with _lock(root, fcntl.LOCK_SH):
        yield


def refresh(path: Path) -> bool:
    """Mark an artifact as used now; return False if it is missing."""
    try:
        if path.stat().st_mtime < time.time() - YOUNG_SECONDS:
            os.utime(path)
    except FileNotFoundError:
        return False
    return True


@dataclass(frozen=True)
class OldArtifact:
    """An artifact that is not needed, and can be removed."""

    name: str
    bytes: int
    remove: Callable[[], object]


class Shared(Protocol):
    """Artifacts in a store that several hosts share."""

    def put(self, digest: str, content: bytes) -> None:
        """Store content under its digest, or mark it as used now."""

    def get(self, digest: str) -> Iterator[bytes]:
        """Yield the content in parts; raise NotFoundError if it is missing."""

    def old(self, before: float) -> Iterator[OldArtifact]:
        """Yield the artifacts last used before this time."""


def old(root: Path, before: float) -> Iterator[Path]:
    """Yield the files of artifacts last used before this time."""
    for path in sorted((root / "sha256").glob("*/*")):
        if path.lstat().st_mtime < before - MARGIN:
            yield path


def discard(root: Path, path: Path, before: float) -> None:
    """Remove an artifact, unless it was used meanwhile."""
    with _lock(root, fcntl.LOCK_EX):
        if path.exists() and path.lstat().st_mtime < before - MARGIN:
            path.unlink()


@contextmanager
def _lock(root: Path, kind: int) -> Iterator[None]:
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(root / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, kind)
        yield
    finally:
        os.close(lock)


INLINE_LIMIT = 4096
"""The most bytes of a text that is inlined in a workflow's history."""


@dataclass(frozen=True)
class Artifacts:
    """Content-addressed files in one folder. Writing is idempotent."""

    root: Path
    shared: Shared | None = None
    """The artifacts of all hosts, where they share a store; the folder then is a cache of these."""
    secret_hosts: SecretRecord | None = None

    @property
    def kept(self) -> KeptSecrets:
        """Return the secrets of the home that contains this folder."""
        return KeptSecrets(self.root.parent, self.secret_hosts)

    def put(self, content: bytes) -> str:
        """Store content and return its digest. Secrets in it are stored separately and replaced by placeholders (ruling
        N7).
        """
        with contextlib.suppress(UnicodeDecodeError):
            content = self.kept.hide(content.decode()).encode()
        digest = hashlib.sha256(content).hexdigest()
        if self.shared:
            self.shared.put(digest, content)
        path = self._path(digest)
        with using(self.root):
            if not refresh(path):
                private_folder(path.parent)
                _write(path, [content])
        return digest

    def get(self, digest: str) -> bytes:
        """Return the content; raise NotFoundError with the digest if it is missing."""
        content = self._in_folder(digest)
        if self.shared and (content is None or not _matches(digest, content)):
            self._fetch(digest, self.shared)
            content = self._in_folder(digest)
        if content is None:
            raise NotFoundError(f"the artifact {digest} is not in {self.root}")
        return content

    def old(self, before: float, cached_before: float) -> Iterator[OldArtifact]:
        """Yield the artifacts last used before `before`; if the folder is a cache, also its files last used before
        `cached_before`.
        """
        if self.shared:
            yield from self.shared.old(before)
        if self.shared and not self._handed_over.exists():
            return
        limit = cached_before if self.shared else before
        for path in old(self.root, limit):
            yield OldArtifact(str(path), path.lstat().st_size, partial(discard, self.root, path, limit))

    def hand_over(self) -> None:
        """Copy this home's artifacts into the store that the hosts share, once per home."""
        if not self.shared or self._handed_over.exists():
            return
        for path in sorted((self.root / "sha256").glob("*/*")):
            content = path.read_bytes()
            if _matches(digest := path.parent.name + path.name, content):
                self.shared.put(digest, content)
        if self.secret_hosts and self.kept.folder.is_dir():
            self.secret_hosts.add(path.name for path in self.kept.folder.iterdir() if not path.name.startswith("."))
        private_folder(self.root)
        _write(self._handed_over, [])

    @property
    def is_cache(self) -> bool:
        """Return whether all content in this folder is in a store that hosts share, too."""
        return self.shared is not None and self._handed_over.exists()

    @property
    def _handed_over(self) -> Path:
        return self.root / "handed-over"

    def _in_folder(self, digest: str) -> bytes | None:
        try:
            return self._path(digest).read_bytes()
        except FileNotFoundError:
            return None

    def _fetch(self, digest: str, shared: Shared) -> None:
        """Write content of the shared store to the folder, part by part."""
        path = self._path(digest)
        with using(self.root):
            private_folder(path.parent)
            _write(path, _verify(digest, shared.get(digest)))

    def text(self, content: str) -> Text:
        """Return a text for a history: inline if it is short, else by digest."""
        content = self.kept.hide(content)
        encoded = content.encode()
        if len(encoded) <= INLINE_LIMIT:
            return Text(inline=content)
        return Text(digest=self.put(encoded))

    def travelling(self, worker: Worker) -> Worker:
        """Return a worker for a history, with its template by digest: every leg of a tree carries its worker."""
        if worker.ephemeral or not worker.template:
            return worker
        return worker.model_copy(update={"template": None, "template_digest": self.put(worker.template.encode())})

    def read(self, text: Text) -> str:
        """Return the words of a text, inline or by digest."""
        if text.digest:
            return self.get(text.digest).decode()
        return text.inline or ""

    def brief(self, job_id: str) -> Path:
        """Return the file with a coordinator's artifact bodies in full (spec: optional inlining)."""
        return self.root / "delegations" / job_id / "brief.md"

    def add_to_brief(self, job_id: str, title: str, digest: str) -> None:
        """Add a stored body with its title to the job's brief and manifest. Idempotent."""
        folder = self.brief(job_id).parent
        private_folder(folder)
        with open_to_append(folder / "lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            manifest = {title: digest}
            with contextlib.suppress(FileNotFoundError):
                manifest = json.loads((folder / "manifest.json").read_bytes()) | manifest
            _write(folder / "manifest.json", [json.dumps(manifest, indent=2).encode()])
            _write(folder / "brief.md", [self._bodies(manifest).encode("utf-8", "surrogateescape")])

    def _bodies(self, manifest: dict[str, str]) -> str:
        """Format each artifact body verbatim in a fenced block, so that it can't imitate the body of another leg."""
        read = {name: self.get(kept).rstrip().decode("utf-8", "surrogateescape") for name, kept in manifest.items()}
        return write_fenced(json.dumps(manifest), lambda fences: _frame(read, fences))

    def _path(self, digest: str) -> Path:
        return self.root / "sha256" / digest[:2] / digest[2:]


def _frame(bodies: Mapping[str, str], fences: Fences) -> str:
    blocks = (f"## {name}\n\n{fences.as_it_is(body, name)}" for name, body in bodies.items())
    return "\n\n".join([fences.meaning(), *blocks]) + "\n"


def _matches(digest: str, content: bytes) -> bool:
    return hashlib.sha256(content).hexdigest() == digest


def _verify(digest: str, parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the parts of content. After the last part, raise NotFoundError if the content doesn't have this digest."""
    actual = hashlib.sha256()
    for part in parts:
        actual.update(part)
        yield part
    if actual.hexdigest() != digest:
        raise NotFoundError(f"the stored content of the artifact {digest} was changed, so it is not used")


def _write(path: Path, parts: Iterable[bytes]) -> None:
    """Write a file atomically."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(parts)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
