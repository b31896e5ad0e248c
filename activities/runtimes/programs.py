"""What there is to know of an agent program, and where it stands on this machine: found, new enough, logged in.

Which programs there are says `table`. Nothing here runs a program: `find` and `logged_in` look at files and variables.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from workflows.contract.models import AutonomyPolicy

_VERSION = re.compile(r"\d+\.\d+\.\d+")
_OWN_WAY = re.compile(
    r"""^\s*"?(?:api_key|env_key|base_url|model_provider|oss_provider|profile|cli_auth_credentials_store)"?\s*=\s*["'][^"']"""
    r"""|["'](?:apiKeyHelper|ANTHROPIC_\w+|CLAUDE_CODE_\w+|primaryApiKey)["']\s*:""",
    re.MULTILINE,
)
"""In a program's own settings: a provider, a key or a place for the login of the user's choice."""
_ITS_SETTINGS = ("config.toml", "settings.json", ".claude.json", "../.claude.json")
_OWN_ARGUMENT = re.compile(r"provider|profile|--oss|-p\Z|--settings|--bare|base_url")

NETWORK = (
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"),
)
"""Variables by which every program finds its way out; passed to all of them."""


class Counts(StrEnum):
    """What the tokens that a program reports are counted over."""

    RUN = "run"
    """Of this run."""
    SESSION = "session"
    """Of the whole session so far: what a run used is the difference to what was told before."""


@dataclass(frozen=True)
class Program:
    """One agent program, as its makers ship it. Its runs have sessions that a later one can go on in."""

    name: str
    """Its command, and what the setting `adapter` calls it."""
    minimum: tuple[int, int, int]
    """The version its adapter was measured with; an older one may lack what the adapter asks of it."""
    install: str
    """What to type to install or update it."""
    login: str
    """What to type to log in."""
    home_variable: str
    """Moves the folder in which it keeps its login, its settings and its sessions."""
    home_folder: str
    """That folder, below the user's home, when the variable is not set."""
    credentials: tuple[str, ...]
    """Patterns of the files in that folder that a login leaves."""
    keys: tuple[str, ...]
    """Variables of which any one stands for a login."""
    lost_session: str
    """A pattern of what it says when the session it is to go on in is not there, or not for this folder."""
    in_vain: str = ""
    """A pattern of a line in which it says that it will try again to be let in, though it was told that it is not."""
    counts: Counts = Counts.RUN
    model_option: str = "--model"
    """What the name of a model stands behind on its command line."""
    builds_with: AutonomyPolicy = AutonomyPolicy.DANGER_FULL_ACCESS
    """The least policy under which it runs a build and tests: below it claude and kimi refuse commands that write."""
    hosts: tuple[str, ...] = ()
    """What it speaks to: the model, its login. In a box it reaches nothing else unless the settings say so."""
    reads: tuple[str, ...] = ()
    """What it reads in that folder, beside its login: settings, instructions. In a box it cannot change them."""
    writes: tuple[str, ...] = ()
    """Folders in that folder in which it keeps its sessions."""
    settings: tuple[str, ...] = ()
    """Further variables of its own that it is given when the service has them."""

    @property
    def passes(self) -> tuple[str, ...]:
        """Every variable of the service's that the program is given without being asked for."""
        return (self.home_variable, *self.keys, *self.settings, *NETWORK)

    @property
    def way_in(self) -> str:
        """What to type to log in; a variable has to be there when the daemon starts."""
        return (
            f"{self.login}, or set {self.keys[0]} and start the daemon anew: service daemon stop; service daemon start"
        )

    def home(self, environ: Mapping[str, str] = os.environ) -> Path:
        """Where it keeps its login: the user's own folder, so who has logged in by hand has logged in here."""
        moved = environ.get(self.home_variable)
        return Path(moved) if moved else Path(environ.get("HOME") or Path.home()) / self.home_folder


def find(program: Program, command: Sequence[str] = (), environ: Mapping[str, str] = os.environ) -> str | None:
    """Where the program is: the settings' command, else by its name on the PATH; None when there is none."""
    return shutil.which(command[0] if command else program.name, path=environ.get("PATH"))


def version_command(program: Program, command: Sequence[str] = ()) -> tuple[str, ...]:
    """What prints the version; it calls no model."""
    return (*(command or (program.name,)), "--version")


def version_in(output: str) -> tuple[int, int, int] | None:
    """The version a program printed."""
    found = _VERSION.search(output)
    if found is None:
        return None
    major, minor, patch = map(int, found[0].split("."))
    return major, minor, patch


def logged_in(
    program: Program,
    granted: Iterable[str] = (),
    environ: Mapping[str, str] = os.environ,
    *,
    started_as: Sequence[str] = (),
    platform: str = sys.platform,
) -> bool | None:
    """Whether somebody has logged in, as far as files and variables tell; None when they cannot.

    They cannot where the settings grant variables (of a provider of the user's own), where a key chain keeps the login,
    and where `started_as`, the settings' command and arguments, may bring one along.
    """
    if any(environ.get(name) for name in program.keys):
        return True
    home = program.home(environ)
    if any(path.is_file() and path.stat().st_size for pattern in program.credentials for path in home.glob(pattern)):
        return True
    if any(environ.get(name) for name in granted) or platform == "darwin":
        return None
    return None if _has_its_own_way(program, started_as) or any(map(_names_another, _settings(home))) else False


def _has_its_own_way(program: Program, started_as: Sequence[str]) -> bool:
    """A script in the program's place, or arguments that choose a provider."""
    another = bool(started_as) and Path(started_as[0]).name != program.name
    return another or any(_OWN_ARGUMENT.search(word) for word in started_as[1:])


def _settings(home: Path) -> Iterator[Path]:
    yield from (home / name for name in _ITS_SETTINGS)


def _names_another(config: Path) -> bool:
    """A provider of the user's own, in the program's own settings."""
    try:
        return bool(_OWN_WAY.search(config.read_text("utf-8", "replace")))
    except OSError:
        return False
