"""Facts about an agent program, and its state on this machine: whether it is installed, new enough and logged in.

`known_runtimes` lists the programs. Nothing here runs a program: `find` and `logged_in` look at files and variables.
"""

import base64
import contextlib
import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from workflows.contract.models import AutonomyPolicy

_VERSION = re.compile(r"(?<!\d)\d{1,9}\.\d{1,9}\.\d{1,9}")
_OWN_WAY = re.compile(
    r"""^[ \t]*"?(?:api_key|env_key|base_url|model_provider|oss_provider|profile|cli_auth_credentials_store)"?"""
    r"""[ \t]*=[ \t]*["'][^"']"""
    r"""|["'](?:apiKeyHelper|ANTHROPIC_\w+|CLAUDE_CODE_\w+|primaryApiKey)["']\s*:""",
    re.MULTILINE,
)
"""Keys in a program's own settings by which a user chooses a provider, a key or where the login is stored."""
_ITS_SETTINGS = ("config.toml", "settings.json", ".claude.json", "../.claude.json")
_OWN_ARGUMENT = re.compile(r"provider|profile|--oss|-p\Z|--settings|--bare|base_url")

NETWORK = (
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"),
)
"""Proxy and certificate variables, passed to all programs."""


class UsageScope(StrEnum):
    """Whether the tokens that a program reports are those of one run or of its whole session."""

    RUN = "run"
    """This run."""
    SESSION = "session"
    """The whole session so far: a run's usage is the difference to the last report."""
    ESTIMATED = "estimated"
    """No count, or not of all requests: tokens are estimated from the texts, and marked (ruling S7)."""


@dataclass(frozen=True)
class Renewal:
    """The renewal of a program's login before the login expires."""

    expires: tuple[str, ...]
    """Keys that lead to the moment in the login's file: a number, or a JSON Web Token that has it."""
    arguments: tuple[str, ...]
    """Arguments of a call in which the program renews a login that expires within minutes."""
    text: str = ""
    """Content of `RENEWAL_FILE` in the call's folder, which is also its standard input."""
    asks: bool = False
    """True if the call asks the model for a word."""


RENEWAL_FILE = "input.md"


@dataclass(frozen=True)
class Program:
    """An agent program as its makers ship it. Its runs have sessions that a later run can continue."""

    name: str
    """The program's command unless `command` says another, and its name in the setting `adapter`."""
    minimum: tuple[int, int, int]
    """The version with which the adapter was measured; an older version may lack what the adapter needs."""
    install: str
    """The command to install or update it."""
    login: str
    """The command to log in."""
    home_variable: str
    """Variable that moves the folder with its login, settings and sessions."""
    home_folder: str
    """That folder below the user's home, if the variable is not set."""
    credentials: tuple[str, ...]
    """Patterns of the files in that folder that a login leaves."""
    keys: tuple[str, ...]
    """Variables of which any one replaces a login."""
    lost_session: re.Pattern[str]
    """Pattern of the program's error that the session to continue is missing, or is of another folder."""
    in_vain: re.Pattern[str] | None = None
    """Pattern of a line by which the program says that it retries although its login was refused."""
    counts: UsageScope = UsageScope.RUN
    model_option: str = "--model"
    """Its option for the name of a model. Empty: the model is chosen by ACP."""
    builds_with: AutonomyPolicy = AutonomyPolicy.DANGER_FULL_ACCESS
    """The strictest policy under which the program can run a build and tests: under stricter ones claude and kimi
    refuse commands that write.
    """
    hosts: tuple[str, ...] = ()
    """Its hosts: the model's, and the login's. In a box it reaches only these, unless the settings add others."""
    instructions: tuple[str, ...] = ()
    """Files and folders in that folder that a person wrote for its agents. Jobs get copies."""
    writes: tuple[str, ...] = ()
    """Folders and files in that folder with its sessions."""
    settings_used: tuple[str, ...] = ()
    """Patterns of the keys of its settings file that jobs get: the model and its provider, but none that start other
    programs.
    """
    login_used: tuple[str, ...] = ()
    """Keys of the login's file that jobs get; empty: all."""
    renews: tuple[tuple[str, str | int], ...] = ()
    """Keys in the login's file that let the program renew the login, with the values that jobs get in their place."""
    renewal: Renewal | None = None
    """None: the service never renews its login."""
    takes_schema: bool = False
    """True if the program can hold its agent to a result's schema (ruling S6)."""
    result_tool: str = ""
    """The tool that takes the result, and refuses in the session what doesn't fit the schema."""
    settings: tuple[str, ...] = ()
    """Further environment variables of the program, passed on if the service has them."""
    command: str = ""
    acp: tuple[str, ...] | None = None
    """The arguments by which it speaks the Agent Client Protocol (ruling S7); None: it has an adapter of its own."""
    sets: Mapping[str, str] = field(default_factory=dict)
    """Variables that each of its runs has."""
    held_by: Mapping[AutonomyPolicy, tuple[str, ...]] = field(default_factory=dict)
    """Arguments by which an ACP program refuses what a policy forbids: a refused permission request ends its turn."""
    held_with: Mapping[AutonomyPolicy, Mapping[str, str]] = field(default_factory=dict)
    """Variables to the same end."""
    own_errors: re.Pattern[str] | None = None
    """Pattern of a message in which an ACP program reports an error of its own, with that error as its group."""

    @property
    def passes(self) -> tuple[str, ...]:
        """Return the names of all variables that the program gets by default."""
        return (self.home_variable, *self.keys, *self.settings, *NETWORK)

    @property
    def start(self) -> str:
        """Return the program's command."""
        return self.command or self.name

    @property
    def way_in(self) -> str:
        """Return the commands that log in to the program, including the variable that can be set before the daemon
        starts.
        """
        if not self.keys:
            return self.login
        return (
            f"{self.login}, or set {self.keys[0]} and start the daemon anew: service daemon stop; service daemon start"
        )

    def update(self, path: str) -> str:
        """Return the command that updates the program where it is installed: by uv, by Homebrew, or by npm."""
        parts = Path(os.path.realpath(path)).parts
        if "uv" in parts and "tools" in parts[:-1]:
            return f"uv tool upgrade {parts[parts.index('tools') + 1]}"
        if "Cellar" in parts[:-1]:
            return f"brew upgrade {parts[parts.index('Cellar') + 1]}"
        command, note, more = self.install.partition(" (")
        return f"{command}@latest{note}{more}"

    def home(self, environ: Mapping[str, str] = os.environ) -> Path:
        """Return the folder with the program's login: the user's own folder, so that a login by hand counts."""
        moved = environ.get(self.home_variable)
        return Path(moved) if moved else Path(environ.get("HOME") or Path.home()) / self.home_folder


def find(program: Program, command: Sequence[str] = (), environ: Mapping[str, str] = os.environ) -> str | None:
    """Find the program: the settings' command, else its name on the PATH; None if it is missing."""
    return shutil.which(command[0] if command else program.start, path=environ.get("PATH"))


def version_command(program: Program, command: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the command that prints the version; it calls no model."""
    return (*(command or (program.start,)), "--version")


def version_in(output: str) -> tuple[int, int, int] | None:
    """Parse the version that a program printed."""
    match = _VERSION.search(output)
    if match is None:
        return None
    major, minor, patch = map(int, match[0].split("."))
    return major, minor, patch


def is_logged_in(
    program: Program,
    granted: Iterable[str] = (),
    environ: Mapping[str, str] = os.environ,
    *,
    started_as: Sequence[str] = (),
    platform: str = sys.platform,
) -> bool | None:
    """Return whether somebody has logged in, from files and variables; None if they can't tell.

    They can't if the settings grant variables (of a provider of the user's own), or if a key chain keeps the login. Nor
    can they if `started_as`, the command and arguments in the settings, may supply a login.
    """
    if any(environ.get(name) for name in program.keys):
        return True
    home = program.home(environ)
    if any(path.is_file() and path.stat().st_size for pattern in program.credentials for path in home.glob(pattern)):
        return True
    if any(environ.get(name) for name in granted) or platform == "darwin" or not program.credentials:
        return None
    return None if _has_its_own_way(program, started_as) or any(map(_names_another, _settings(home))) else False


def login_expires(program: Program, environ: Mapping[str, str] = os.environ) -> float | None:
    """Return when the login expires unless it is renewed, in seconds since the epoch; the latest if there are several.

    None if a key replaces the login, or if no file has both an expiry time and a refresh token.
    """
    if program.renewal is None or any(environ.get(name) for name in program.keys):
        return None
    home, moments = program.home(environ), list[float]()
    token = (*program.renewal.expires[:-1], program.renews[0][0])
    for path in (path for pattern in program.credentials for path in home.glob(pattern)):
        with contextlib.suppress(OSError, ValueError, RecursionError, LookupError, TypeError):
            login = json.loads(path.read_text())
            if _inner(login, token):
                moments.append(_moment(_inner(login, program.renewal.expires)))
    return max(moments, default=None)


def _inner(login: Any, keys: Iterable[str]) -> Any:
    for key in keys:
        login = login[key]
    return login


def _moment(value: float | str) -> float:
    """Return a moment in seconds: given in seconds or in milliseconds, or in the payload of a JSON Web Token."""
    if isinstance(value, str):
        value = json.loads(base64.urlsafe_b64decode(value.split(".")[1] + "=="))["exp"]
    return float(value) / (1000 if float(value) > 1e11 else 1)


def _has_its_own_way(program: Program, started_as: Sequence[str]) -> bool:
    """Return whether the settings replace the program, or pass it arguments that choose a provider."""
    another = bool(started_as) and Path(started_as[0]).name != program.start
    return another or any(_OWN_ARGUMENT.search(word) for word in started_as[1:])


def _settings(home: Path) -> Iterator[Path]:
    yield from (home / name for name in _ITS_SETTINGS)


def _names_another(config: Path) -> bool:
    """Return whether the program's own settings file chooses another provider."""
    try:
        return bool(_OWN_WAY.search(config.read_text("utf-8", "replace")))
    except OSError:
        return False
