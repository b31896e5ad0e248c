"""The header that authenticates a call from one host to another host's bridge: an HMAC under the seal key, which all
hosts on a store share.

It is valid for one path on one host, and for a short time by the store's clock, so a stolen copy is of little use
(ruling Q3).
"""

import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote, unquote

from activities.sealing import seal_key

HEADER = "x-service-host"
LASTS = 30.0
"""Seconds before and after its creation in which a call is accepted: clocks are read at different moments."""

_PURPOSE = "host to host"


@dataclass(frozen=True)
class HostCall:
    """A call from one host to another."""

    caller: str
    called: str
    target: str
    """The path with its query."""
    at: float
    """Time on the store's clock."""

    def header(self, key: bytes) -> str:
        """Return the header's value."""
        return f"{self.at:.3f} {self._signature(key)} {quote(self.caller, safe='')}"

    def is_fresh(self, now: float) -> bool:
        return abs(now - self.at) <= LASTS

    def _signature(self, key: bytes) -> str:
        own = seal_key.derive(key, _PURPOSE, self.caller, self.called)
        return hmac.digest(own, f"{self.at:.3f} {self.target}".encode(), "sha256").hex()

    @classmethod
    def read(cls, keys: Iterable[bytes], shown: str, called: str, target: str) -> "HostCall | None":
        """Return the call of a header; None unless one of these keys signed the header, for this host and target."""
        at, _, rest = shown.partition(" ")
        signature, _, caller = rest.partition(" ")
        try:
            call = cls(unquote(caller), called, target, float(at))
        except ValueError:
            return None
        made = (call._signature(key).encode() for key in keys)
        return call if any(hmac.compare_digest(signature.encode(), expected) for expected in made) else None
