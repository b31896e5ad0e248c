"""The HTTP bridge: serving it, and the token its callers show."""

from collections.abc import Callable
from pathlib import Path

from bridge.http import address, token
from bridge.operations.service import Service


def serve(service: Service, addr: str | None, *, allow_remote: bool, announce: Callable[[str], None]) -> None:
    """Serve in the foreground until told to stop; `announce` hears the URL once calls are taken."""
    where = address.wanted(service.settings.bridge, addr, allow_remote=allow_remote)
    from bridge.http.server import serve as listen

    listen(service, where, lambda found: announce(f"http://{found}"))


def token_path(service: Service) -> Path:
    """Where the token stands; made when there is none yet."""
    return token.ensure(service.home)


def rotate_token(service: Service) -> Path:
    """Replace the token; a bridge that runs takes the new one at once."""
    return token.rotate(service.home)
