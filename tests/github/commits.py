"""Commits that the emulator makes itself, addressed by everybody else by git's names."""

import json
import re
from dataclasses import dataclass, field, replace

from tests.github.wire import Json, Reply, Request

_COMMIT = re.compile(r"(?<![0-9a-f])[0-9a-f]{40}(?![0-9a-f])")


@dataclass
class Commits:
    """A two-way map between a test's names of commits and the emulator's."""

    _theirs: dict[str, str] = field(default_factory=dict)
    _ours: dict[str, str] = field(default_factory=dict)

    def call(self, theirs: str, ours: str) -> None:
        """Add a pair of names."""
        self._theirs[ours], self._ours[theirs] = theirs, ours

    def asked(self, request: Request) -> Request:
        """Translate a request to the emulator's names."""
        query = {name: self._named(value, self._theirs) for name, value in request.query.items()}
        body = self._named(request.body.decode(), self._theirs).encode()
        return replace(request, path=self._named(request.path, self._theirs), query=query, body=body)

    def answered(self, reply: Reply) -> Reply:
        """Translate a reply to the test's names."""
        if not isinstance(reply.body, dict | list):
            return reply
        body: Json = json.loads(self._named(json.dumps(reply.body), self._ours))
        return replace(reply, body=body)

    @staticmethod
    def _named(text: str, names: dict[str, str]) -> str:
        return _COMMIT.sub(lambda found: names.get(found[0], found[0]), text)
