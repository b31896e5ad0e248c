"""The artifact store: everything too large for a history or a row, under the digest of its content."""

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from workflows.errors import NotFoundError
from workflows.tree.jobs import Text

INLINE_LIMIT = 4096
"""Bytes a text may have and still travel inside a workflow's history."""


@dataclass(frozen=True)
class Artifacts:
    """Content-addressed files below one folder; writing the same content twice is writing it once."""

    root: Path

    def put(self, content: bytes) -> str:
        """Store and return the digest."""
        digest = hashlib.sha256(content).hexdigest()
        path = self._path(digest)
        if not path.exists():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, temporary = tempfile.mkstemp(dir=path.parent)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            Path(temporary).replace(path)
        return digest

    def get(self, digest: str) -> bytes:
        """The content; a missing one names its digest."""
        try:
            return self._path(digest).read_bytes()
        except FileNotFoundError:
            raise NotFoundError(f"the artifact {digest} is not in {self.root}") from None

    def text(self, content: str) -> Text:
        """A text as it may travel: inline when short, else by digest."""
        encoded = content.encode()
        if len(encoded) <= INLINE_LIMIT:
            return Text(inline=content)
        return Text(digest=self.put(encoded))

    def read(self, text: Text) -> str:
        """The words behind a travelling text."""
        if text.digest:
            return self.get(text.digest).decode()
        return text.inline or ""

    def _path(self, digest: str) -> Path:
        return self.root / "sha256" / digest[:2] / digest[2:]
