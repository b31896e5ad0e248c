"""The programs behind the runtimes: what each is called, what it needs, and how to put right what it lacks.

Pure description; nothing here runs a program. `find` and `logged_in` only look at files and variables.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from workflows.contract.models import AutonomyPolicy

_VERSION = re.compile(r"\d+\.\d+\.\d+")
_KEY = re.compile(r'^\s*(?:api_key|env_key)\s*=\s*"[^"]', re.MULTILINE)

NETWORK = (
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"),
)
"""Variables by which every program finds its way out; passed to all of them."""


@dataclass(frozen=True)
class Program:
    """One agent program, as its makers ship it."""

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
    builds_with: AutonomyPolicy = AutonomyPolicy.DANGER_FULL_ACCESS
    """The least policy under which it runs a build and tests: below it claude and kimi refuse commands that write."""
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


CODEX = Program(
    name="codex",
    minimum=(0, 169, 0),
    install="npm install -g @openai/codex",
    login="codex login",
    home_variable="CODEX_HOME",
    home_folder=".codex",
    credentials=("auth.json",),
    keys=("CODEX_API_KEY", "OPENAI_API_KEY"),
    builds_with=AutonomyPolicy.WORKSPACE_WRITE,  # its sandbox then writes the worktree, but nothing of git's
)
CLAUDE = Program(
    name="claude",
    minimum=(2, 1, 329),
    install="npm install -g @anthropic-ai/claude-code",
    login="claude /login",
    home_variable="CLAUDE_CONFIG_DIR",
    home_folder=".claude",
    credentials=(".credentials.json",),
    keys=(
        *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
        *("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"),
    ),
    settings=("ANTHROPIC_BASE_URL", "API_TIMEOUT_MS", "CLAUDE_CODE_MAX_RETRIES"),
)
KIMI = Program(
    name="kimi",
    minimum=(2, 1, 0),
    install="npm install -g @moonshot-ai/kimi-code (it needs node 22.19 or newer)",
    login="kimi, and in it /login",
    home_variable="KIMI_CODE_HOME",
    home_folder=".kimi-code",
    credentials=("credentials/*",),
    keys=("KIMI_MODEL_API_KEY",),
    settings=(
        *("KIMI_MODEL_NAME", "KIMI_MODEL_BASE_URL", "KIMI_MODEL_PROVIDER_TYPE"),
        *("KIMI_LOOP_MAX_ATTEMPTS_PER_STEP", "KIMI_MODEL_THINKING_EFFORT"),
    ),
)

PROGRAMS: dict[str, Program] = {program.name: program for program in (CODEX, CLAUDE, KIMI)}
DEFAULTS: dict[str, Program] = {"runtime_a": CODEX, "runtime_b": CLAUDE, "runtime_c": KIMI}
"""What drives a runtime of which the settings say nothing."""


def program_of(runtime: str, adapter: str = "") -> Program | None:
    """The program behind a runtime; None for a script and for the shell."""
    return PROGRAMS.get(adapter) if adapter else DEFAULTS.get(runtime)


def runtime_of(name: str) -> str | None:
    """The runtime that a program drives, for who calls it by the program's name."""
    return next((runtime for runtime, program in DEFAULTS.items() if program.name == name), None)


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
    platform: str = sys.platform,
) -> bool | None:
    """Whether somebody has logged in, as far as files and variables tell; None when they cannot.

    They cannot where the settings grant variables (of a provider of the user's own) or a key chain keeps the login.
    """
    if any(environ.get(name) for name in program.keys):
        return True
    home = program.home(environ)
    if any(path.is_file() and path.stat().st_size for pattern in program.credentials for path in home.glob(pattern)):
        return True
    if any(environ.get(name) for name in granted) or platform == "darwin" or _names_a_key(home / "config.toml"):
        return None
    return False


def _names_a_key(config: Path) -> bool:
    """A provider of the user's own, in the program's own settings."""
    try:
        return bool(_KEY.search(config.read_text("utf-8", "replace")))
    except OSError:
        return False
