"""The kinds of values in `config.toml`: durations, labels, paths, addresses. Each checks what was typed."""

import re
from ipaddress import ip_address
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer
from pydantic_core import PydanticCustomError

from activities.boxes.allowed_hosts import HostEntry
from activities.git.remotes import without_credentials
from activities.runtimes.known_runtimes import ADAPTERS
from workflows.policy.placement import OWN_LABEL
from workflows.text.durations import format_duration, parse_duration

SHORTEST_AWAY = 20
"""Two heartbeats of a host, in seconds: a host that works is never away for so long."""


def _seconds(value: object) -> object:
    if isinstance(value, str):
        if (seconds := parse_duration(value)) <= 0:
            raise ValueError(f'must be longer than zero, not "{value}"')
        return seconds
    raise ValueError('a duration is text such as "90s", "30m" or "1h30m"')


def _seconds_or_unset(value: object) -> object:
    try:
        return None if value == "" else _seconds(value)
    except ValueError as error:
        raise ValueError(f'{error}; to set no limit, leave the key out or set it to ""') from None


def _away(seconds: float) -> float:
    if 0 < seconds < SHORTEST_AWAY:
        least = f"{format_duration(SHORTEST_AWAY)} at least (two heartbeats of a host)"
        raise ValueError(f'must be "0", or {least}, not "{format_duration(seconds)}"')
    return seconds


def _label(value: str) -> str:
    if not re.fullmatch(OWN_LABEL, value):
        raise PydanticCustomError("label", "Input should be letters, digits, dots, dashes and underscores")
    return value


def _adapter_name(value: str) -> str:
    if value not in ("", *ADAPTERS):
        known = f"{', '.join(map(repr, ('', *ADAPTERS[:-1])))} or {ADAPTERS[-1]!r}"
        raise PydanticCustomError("literal_error", "Input should be {expected}", {"expected": known})
    return value


def _allowed_host(value: str) -> str:
    HostEntry.read(value)
    return value


def _box_path(value: str) -> str:
    if not value.startswith(("/", "~/")) or "\0" in value:
        raise ValueError(f"{value!r} is not a path: write one that begins with / or ~/")
    return value


def _listener(value: str) -> str:
    address, _, port = value.rpartition(":")
    try:
        if value and not (ip_address(address.strip("[]")) and 0 < int(port) < 65536):
            raise ValueError
    except ValueError:
        raise ValueError(f"{value!r} is not an IP address and a port, such as 127.0.0.1:9464") from None
    return value


def _no_object_store(value: str) -> str:
    if value:
        bring = f"bring what is kept in {without_credentials(value)} there (service help sizing says how)"
        raise ValueError(f"object stores are gone, PostgreSQL has all artifacts: {bring}, then leave this out")
    return value


def _repository_url(value: str) -> str:
    if value.startswith("-") or not value.isprintable():
        raise ValueError(f"{value!r} is not a URL or a path of a repository")
    if without_credentials(value) != value:
        raise ValueError("it holds a password: let git's credential helper keep that")
    return value


_AS_TYPED = PlainSerializer(lambda seconds: "" if seconds is None else format_duration(seconds), when_used="json")
"""A JSON form like the one in the file."""
_AS_TYPED_OR_NEVER = PlainSerializer(lambda seconds: format_duration(seconds) if seconds else "0", when_used="json")
Duration = Annotated[float, BeforeValidator(_seconds), Field(gt=0), _AS_TYPED]
Away = Annotated[
    float,
    BeforeValidator(lambda value: 0.0 if value == "0" else _seconds(value)),
    AfterValidator(_away),
    _AS_TYPED_OR_NEVER,
]
"""A duration of two heartbeats of a host at least, or never."""
Timeout = Annotated[float | None, BeforeValidator(_seconds_or_unset), _AS_TYPED]
Label = Annotated[str, AfterValidator(_label)]
AdapterName = Annotated[str, AfterValidator(_adapter_name)]
AllowedHost = Annotated[str, AfterValidator(_allowed_host)]
BoxPath = Annotated[str, AfterValidator(_box_path)]
Listener = Annotated[str, AfterValidator(_listener)]
NoObjectStore = Annotated[str, AfterValidator(_no_object_store)]
RepositoryUrl = Annotated[str, AfterValidator(_repository_url)]
WebOrigin = Annotated[str, Field(pattern=r"^$|^https?://[^/\s?#@]+$")]
VariableName = Annotated[str, Field(pattern=r"^$|^[A-Za-z_][A-Za-z0-9_]*$")]
