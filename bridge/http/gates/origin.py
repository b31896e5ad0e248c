"""Protection against DNS rebinding and cross-site requests: a web page elsewhere must not reach the bridge (ruling
J12).
"""

import ipaddress
import re
from collections.abc import Collection
from functools import lru_cache
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Scope

from bridge.http.gates.gate import HeadGate, header
from bridge.http.wire.errors import ForbiddenHostError, ForbiddenOriginError
from bridge.http.wire.webhook import is_signed

NAMES = frozenset({"localhost", "host.docker.internal", "host.containers.internal"})
_HOST = re.compile(r"(?:\[(?P<v6>[^\[\]]+)\]|(?P<name>[^\[\]:/@\s]+))(?::[0-9]{1,5})?")


class OriginGate(HeadGate):
    """A gate that accepts only the service's own host names and addresses, and no foreign Origin."""

    def __init__(self, app: ASGIApp, allowed_hosts: Collection[str], url: str = "") -> None:
        super().__init__(app)
        named = {name.lower().rstrip(".") for name in (*allowed_hosts, urlsplit(url).hostname or "")}
        self._names, self._url = NAMES | named - {""}, url

    async def check(self, scope: Scope) -> None:
        if is_signed(scope):  # no page in a browser can sign
            return
        host = header(scope, b"host") or ""
        if not self._is_ours(host):
            hint = "use an address, localhost, or a name listed in [bridge].allowed_hosts"
            raise ForbiddenHostError(f"the bridge does not serve the host name {host[:100]!r}; {hint}")
        origin = header(scope, b"origin")
        if origin is not None and not is_own(origin, host, self._url):
            raise ForbiddenOriginError(f"pages of {origin[:100]!r} may not call the bridge")

    def _is_ours(self, host: str) -> bool:
        match = _HOST.fullmatch(host)
        if match is None:
            return False
        name = match["name"]
        return (
            _is_address(match["v6"], 6)
            if name is None
            else _is_address(name, 4) or name.lower().removesuffix(".") in self._names
        )


def is_own(origin: str, host: str, url: str = "") -> bool:
    """Return whether the origin is a page of this bridge: under the requested host, or under its public URL."""
    return origin.lower() in {f"http://{host.lower()}", url.lower()} - {""}


@lru_cache(maxsize=256)
def _is_address(text: str, version: int) -> bool:
    """Return whether the text is an IP address, which needs no DNS and so can't be rebound to this machine."""
    try:
        return ipaddress.ip_address(text).version == version
    except ValueError:
        return False
