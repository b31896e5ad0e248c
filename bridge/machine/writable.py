"""Checks that the home exists and is writable."""

from tempfile import TemporaryFile

from activities.settings.home import Home
from workflows.model.errors import ServiceError


def require_writable(home: Home) -> None:
    """Raise if the home cannot be created or written to."""
    try:
        home.ensure()
        with TemporaryFile(dir=home.root):
            pass
    except OSError as error:
        raise not_writable(home, error.strerror or str(error)) from error


def not_writable(home: Home, why: str) -> ServiceError:
    """Return the error for a home that cannot be used."""
    return ServiceError(
        f"cannot write to the service home {home.root}: {why}",
        f"chown -R $(id -un) {home.root}  (or choose another: export SERVICE_HOME=/some/folder)",
    )
