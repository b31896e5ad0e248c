"""The exact commands a person types for changes on a Temporal server that the service may not make itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from shlex import join
from typing import Protocol

_CLOUD = (".tmprl.cloud", ".api.temporal.io")


@dataclass(frozen=True)
class ServerNamespace:
    """A server and one of its namespaces."""

    address: str
    namespace: str

    @property
    def cloud(self) -> bool:
        """Return whether the server is Temporal Cloud, where namespaces belong to an account and another program makes
        them.
        """
        return self.address.partition(":")[0].endswith(_CLOUD)


class Lacking(Protocol):
    """The missing parts that a survey found."""

    @property
    def server(self) -> ServerNamespace: ...
    @property
    def there(self) -> bool: ...
    @property
    def missing(self) -> Mapping[str, str]: ...


def commands(seen: Lacking, retention: timedelta) -> tuple[str, ...]:
    """Return the commands for all missing parts, in order."""
    namespace = () if seen.there else (_create(seen.server, retention),)
    attributes = (_add(seen.server, seen.missing),) if seen.missing else ()
    return (*namespace, *attributes)


def removal(server: ServerNamespace, names: Sequence[str]) -> str:
    """Return the command to remove search attributes. Their type can't be changed, and only the owner knows if they
    may go.
    """
    if server.cloud:
        return f"rename them in the namespace's page in Temporal Cloud: {', '.join(names)}"
    return _temporal(
        server, "search-attribute", "remove", *(word for name in names for word in ("--name", name)), "--yes"
    )


def _create(server: ServerNamespace, retention: timedelta) -> str:
    days = max(1, retention.days)
    if not server.cloud:
        return _temporal(server, "namespace", "create", "--retention", f"{days}d")
    name = server.namespace.partition(".")[0]
    options = ("--region", "REGION", "--retention-days", str(days), "--auth-method", "api_key")
    return join(("tcld", "namespace", "create", "--namespace", name, *options))


def _add(server: ServerNamespace, missing: Mapping[str, str]) -> str:
    if not server.cloud:
        flags = (word for name, kind in missing.items() for word in ("--name", name, "--type", kind))
        return _temporal(server, "search-attribute", "create", *flags)
    flags = (word for name, kind in missing.items() for word in ("--search-attribute", f"{name}={kind}"))
    return join(("tcld", "namespace", "search-attributes", "add", "--namespace", server.namespace, *flags))


def _temporal(server: ServerNamespace, *words: str) -> str:
    return join(("temporal", "operator", *words, "--address", server.address, "--namespace", server.namespace))
