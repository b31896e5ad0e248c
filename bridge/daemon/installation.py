"""Installing the daemon in a service manager: in the user's, which starts it at login (systemd, or launchd on macOS),
or in the system's, which starts it at boot under its own account (systemd).
"""

import os
import plistlib
import pwd
import shlex
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from activities.settings.home import Home
from workflows.model.errors import NotFoundError, RefusedError, UsageError

NAME = "delegation-service"
LABEL = "org.delegation-service.daemon"
_COMMAND = ("-P", "-c", "from cli.main import run; run()", "daemon", "run")

ACCOUNT = "delegation"
ACCOUNT_HOME = Path("/var/lib/delegation-service")
"""The home directory of a system service's account. Commands of that account use the service home in it by default."""


@dataclass(frozen=True)
class Installation:
    """A service manager's file, and the commands that install and remove it."""

    path: Path
    text: str
    commands: tuple[tuple[str, ...], ...]
    """Commands to run, in this order, once the file is written."""
    removal: tuple[tuple[str, ...], ...]
    """Commands to run before the file is removed."""


def plan(home: Home, platform: str = sys.platform) -> Installation:
    """Return the file and commands for this home and this Python."""
    name = _name(home)
    if platform == "darwin":
        path = Path("~/Library/LaunchAgents").expanduser() / f"{LABEL}{name}.plist"
        target = f"gui/{os.getuid()}"
        loading = ("launchctl", "bootstrap", target, str(path))
        return Installation(path, _plist(home, name), (loading,), (("launchctl", "bootout", target, str(path)),))
    if platform != "linux":
        raise UsageError(f"services cannot be installed on {platform}", "service daemon start")
    folder = Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser() / "systemd" / "user"
    unit = f"{NAME}{name}.service"
    manager = ("systemctl", "--user")
    starting = ((*manager, "daemon-reload"), (*manager, "enable", "--now", unit), ("loginctl", "enable-linger"))
    return Installation(folder / unit, _unit(home), starting, ((*manager, "disable", "--now", unit),))


def plan_for_system(platform: str = sys.platform, folder: Path = Path("/etc/systemd/system")) -> Installation:
    """Return the file and commands for a system service, which runs as `ACCOUNT`."""
    if platform != "linux":
        raise UsageError(f"services of the system cannot be installed on {platform}", "service daemon install")
    unit = f"{NAME}.service"
    options = ("--system", "--user-group", "--create-home", "--home-dir", str(ACCOUNT_HOME), "--shell", "/bin/bash")
    making = () if _has_account() else (("useradd", *options, ACCOUNT), ("chmod", "700", str(ACCOUNT_HOME)))
    starting = (("systemctl", "daemon-reload"), ("systemctl", "enable", "--now", unit))
    text = _system_unit(Home(ACCOUNT_HOME / ".service"))
    return Installation(folder / unit, text, (*making, *starting), (("systemctl", "disable", "--now", unit),))


def require_root(verb: str) -> None:
    """Raise if a system service is to be installed or uninstalled by somebody other than root."""
    if os.geteuid() != 0:
        typed = shlex.join((str(Path(sys.argv[0]).absolute()), "daemon", verb, "--system"))
        raise RefusedError(f"a service of the system is {verb}ed by root", f"sudo {typed}")


def require_readable() -> None:
    """Raise if `ACCOUNT` could not read the Python environment of the system service."""
    # An environment links to an interpreter that is elsewhere.
    for needed in (Path(sys.prefix) / "bin", Path(sys.executable).resolve()):
        if closed := closed_folder(needed):
            raise RefusedError(
                f"the account {ACCOUNT} could not run {needed}: {closed} is closed to it",
                "install Python and the package where every account may read them, such as /opt/delegation-service",
            )


def closed_folder(path: Path) -> Path | None:
    """Return the innermost folder around a path that other accounts may not enter."""
    return next((folder for folder in path.parents if not folder.stat().st_mode & stat.S_IXOTH), None)


def _has_account() -> bool:
    try:
        pwd.getpwnam(ACCOUNT)
    except KeyError:
        return False
    return True


def install(home: Home, installation: Installation) -> bool:
    """Write the file, and have the service manager start the daemon. Return False if the manager is missing, or a
    command fails.
    """
    from bridge.machine import daemon_state

    if daemon_state.status(home).running:
        raise RefusedError(f"a daemon that was started by hand runs for {home.root}", "service daemon stop")
    home.ensure()
    return put(installation)


def put(installation: Installation) -> bool:
    """Write the file and run its commands. Return False if the manager is missing, or a command fails."""
    installation.path.parent.mkdir(parents=True, exist_ok=True)
    installation.path.write_text(installation.text)
    return _run_all(installation.commands)


def uninstall(installation: Installation) -> bool:
    """Have the service manager stop the daemon, and remove the file. Return False if it is missing, or a
    command fails.
    """
    if not installation.path.exists():
        raise NotFoundError(f"there is no {installation.path}", "service daemon install")
    succeeded = _run_all(installation.removal)
    installation.path.unlink()
    return succeeded


def _run_all(commands: tuple[tuple[str, ...], ...]) -> bool:
    """Run the commands; return True if all succeeded. `loginctl` may fail: not everyone may enable linger."""
    needed = [command for command in commands if command[0] != "loginctl"]
    if any(shutil.which(command[0]) is None for command in needed):
        return False
    succeeded = all(subprocess.run(each, capture_output=True, check=False).returncode == 0 for each in needed)
    for command in commands[len(needed) :] if succeeded else ():
        if shutil.which(command[0]):
            subprocess.run(command, capture_output=True, check=False)
    return succeeded


def _name(home: Home) -> str:
    """Return a suffix for the unit's name that is unique to a home other than the default one."""
    usual = Path("~/.service").expanduser().absolute()
    return "" if home.root == usual else "-" + "".join(c if c.isalnum() else "-" for c in str(home.root)).strip("-")


def _environment(home: Home, path: str = "") -> dict[str, str]:
    """Return the variables that locate programs. Secrets are left out: they belong in the home's `daemon.env`."""
    return {"SERVICE_HOME": str(home.root), "PATH": path or os.environ.get("PATH", os.defpath)}


def _unit(home: Home, path: str = "", account: str = "", target: str = "default.target") -> str:
    lines = "\n".join(f"Environment={_quote(f'{name}={value}')}" for name, value in _environment(home, path).items())
    command = " ".join(_quote(word).replace("$", "$$") for word in (sys.executable, *_COMMAND))
    secrets = str(home.root / "daemon.env").replace("%", "%%")
    return f"""\
[Unit]
Description=Delegation service
Wants=network-online.target
After=network-online.target

[Service]
Type=exec
{account}{lines}
# Tokens and other secrets of the daemon, one NAME=VALUE a line, readable by its owner alone:
EnvironmentFile=-{secrets}
ExecStart={command}
# Agents that are at work outlive the daemon, and are found again by the next one.
KillMode=process
TimeoutStopSec=60
Restart=on-failure
RestartSec=5
Delegate=yes

[Install]
WantedBy={target}
"""


def _system_unit(home: Home) -> str:
    account = f"User={ACCOUNT}\nGroup={ACCOUNT}\nWorkingDirectory={ACCOUNT_HOME}\n"
    path = f"{ACCOUNT_HOME}/.local/bin:{os.environ.get('PATH', os.defpath)}"
    return _unit(home, path, f"{account}LimitNOFILE=65536\nTasksMax=infinity\n", "multi-user.target")


def _quote(word: str) -> str:
    """Quote a word for a systemd unit, with `%` escaped so that it can't begin a specifier."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def _plist(home: Home, name: str) -> str:
    values = {
        "Label": f"{LABEL}{name}",
        "ProgramArguments": [sys.executable, *_COMMAND],
        "EnvironmentVariables": _environment(home),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "AbandonProcessGroup": True,
        "StandardErrorPath": str(home.logs / "daemon.log"),
    }
    return plistlib.dumps(values).decode()
