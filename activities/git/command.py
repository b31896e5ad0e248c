"""The one way to run the git program: the repository's own configuration only, no hooks, no prompts, no network
helpers.

Most work is done by libgit2 (`library`), which runs nothing. The program does the rest: it speaks to other machines,
checks objects, and decides on conflicts. It never runs in a folder that agents write. File names are `surrogateescape`
text, so that any bytes survive; `printable` makes them fit for records.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from workflows.model.errors import ServiceError

OLDEST_GIT = (2, 38)
"""The first git that merges without a checkout; older ones also list worktrees in a form that breaks some paths."""

GIT_SECONDS = 600.0
LAST_LINES = 5

_CONFIG = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.excludesFile": os.devnull,
    "core.attributesFile": os.devnull,
    "core.safecrlf": "false",
    "core.filesRefLockTimeout": "5000",
    "core.packedRefsTimeout": "5000",
    "core.splitIndex": "false",
    "checkout.workers": "1",
    "branch.autoSetupMerge": "false",
    "commit.gpgSign": "false",
    "credential.helper": "",
    "diff.autoRefreshIndex": "true",
    # a filter may be required and its program absent: pointers stay pointers
    **{f"filter.lfs.{key}": "" for key in ("smudge", "clean", "process")},
    "filter.lfs.required": "false",
    "gc.auto": "0",
    "i18n.commitEncoding": "utf-8",
    "maintenance.auto": "false",
    "merge.verifySignatures": "false",
    "rerere.enabled": "false",
    # operators register repositories on purpose, and in containers the owner often is another account
    "safe.directory": "*",
    "submodule.recurse": "false",
}
PROTOCOLS = "https:http:ssh:file"
SSH_OPTIONS = "-o BatchMode=yes -o ConnectTimeout=15"
_TO_OTHERS = {
    "protocol.version": "2",
    **{f"advice.push{each}": "false" for each in ("UpdateRejected", "FetchFirst", "NonFFCurrent", "NonFFMatching")},
}
_OPERATORS = ("core.excludesFile", "core.attributesFile", "core.safecrlf", "filter.lfs.")
"""Settings that are left to operators in their own checkouts."""


def _as_environment(config: Mapping[str, str], first: int = 0) -> dict[str, str]:
    environment = {"GIT_CONFIG_COUNT": str(first + len(config))}
    for number, (key, value) in enumerate(config.items(), first):
        environment |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return environment


_IDENTITY = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "Delegation Service"), ("EMAIL", "service@localhost"))
}


class GitError(ServiceError):
    """A git command failed: the command, folder, exit code and end of its output."""

    code = "git_failed"

    def __init__(self, where: Path, arguments: Collection[str], returncode: int, output: str) -> None:
        self.where = where
        self.arguments = tuple(arguments)
        self.returncode = returncode
        self.output = output
        command = f"git -C {printable(str(where))} {printable(' '.join(arguments))}"
        super().__init__(f"git failed with exit code {returncode}: {output}", command)


def git(
    where: Path,
    *arguments: str,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    holding: Collection[int] = (),
    seconds: float | None = None,
) -> bytes:
    """Run git and return its output. Git inherits the locks in `holding`, so they last until git ends."""
    process = _popen(where, arguments, env or {}, holding)
    stdout, stderr = _finish(process, where, arguments, stdin, seconds)
    if process.returncode:
        raise GitError(where, arguments, process.returncode, _last_lines(stderr or stdout))
    return stdout


def answer(where: Path, *arguments: str, env: Mapping[str, str] | None = None) -> tuple[bool, bytes]:
    """Run a command whose exit code is an answer (0: yes, 1: no), and return it with the output. Raise GitError for
    other codes.
    """
    process = _popen(where, arguments, env or {}, ())
    stdout, stderr = _finish(process, where, arguments, b"")
    if process.returncode not in (0, 1):
        raise GitError(where, arguments, process.returncode, _last_lines(stderr or stdout))
    return process.returncode == 0, stdout


def git_stream(where: Path, *arguments: str) -> Iterator[bytes]:
    """Yield git's output in pieces, without a limit."""
    process = _popen(where, arguments, {}, (), dies=False)  # another thread may read it than started it
    assert process.stdout is not None
    try:
        while piece := process.stdout.read(1 << 16):
            yield piece
        if process.wait():
            assert process.stderr is not None
            raise GitError(where, arguments, process.returncode, _last_lines(process.stderr.read()))
    finally:
        _kill(process)


def more_config(config: Mapping[str, str]) -> dict[str, str]:
    """Build an environment that adds this configuration: secrets don't appear on a command line."""
    return _as_environment(config, len(_CONFIG))


def with_credentials(
    where: Path, *arguments: str, holding: Collection[int] = (), seconds: float | None = None, most_bytes: int = 0
) -> bytes:
    """Run git with the settings and credentials of the service's own account; nothing prompts (ruling Q3).

    With `most_bytes` no file that git writes gets larger.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    kept = {key: value for key, value in _CONFIG.items() if key != "credential.helper"}
    ours = {key: value for key, value in _environment(where).items() if not key.startswith("GIT_CONFIG")}
    ssh = os.environ.get("GIT_SSH_COMMAND", "ssh")
    quiet = {"GIT_SSH_COMMAND": f"{ssh} {SSH_OPTIONS}", "GIT_ASKPASS": "", "SSH_ASKPASS": ""}
    env = inherited | ours | quiet | {"GIT_ALLOW_PROTOCOL": PROTOCOLS} | _as_environment(kept | _TO_OTHERS)
    process = _start(where, arguments, env, holding, most_bytes=most_bytes)
    stdout, stderr = _finish(process, where, arguments, b"", seconds)
    if process.returncode:
        raise GitError(where, arguments, process.returncode, _last_lines(stderr or stdout))
    return stdout


def in_operators_checkout(where: Path, *arguments: str) -> None:
    """Run git as the checkout's operator would: with their filters, such as LFS, and with their identity if they have
    one.

    Hooks and signatures stay off: nobody is there to answer.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    kept = {key: value for key, value in _CONFIG.items() if not key.startswith(_OPERATORS)}
    quiet = {"GIT_EDITOR": ":", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    env = inherited | quiet | _as_environment(kept)
    who = subprocess.run(["git", "-C", str(where), "var", "GIT_COMMITTER_IDENT"], env=env, capture_output=True)
    process = _start(where, arguments, env if who.returncode == 0 else env | _IDENTITY, ())
    stdout, stderr = _finish(process, where, arguments, b"")
    if process.returncode:
        raise GitError(where, arguments, process.returncode, _last_lines(stderr or stdout))


def _finish(
    process: "subprocess.Popen[bytes]",
    where: Path,
    arguments: Collection[str],
    stdin: bytes,
    seconds: float | None = None,
) -> tuple[bytes, bytes]:
    seconds = GIT_SECONDS if seconds is None else seconds
    try:
        return process.communicate(stdin, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise GitError(where, arguments, -signal.SIGKILL, f"it timed out after {seconds:.0f} s") from None
    finally:
        _kill(process)


def line(where: Path, *arguments: str) -> str:
    """Return the single line that git prints."""
    return git(where, *arguments).decode("utf-8", "surrogateescape").strip("\n")


def paths(output: bytes) -> tuple[str, ...]:
    """Split the output of `git -z` into names, which may have any bytes."""
    return tuple(name.decode("utf-8", "surrogateescape") for name in output.split(b"\0") if name)


def printable(name: str) -> str:
    """Return the name for records and people, with bytes that are not UTF-8 as escapes."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def all_printable(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names as printable text, sorted and unique."""
    return tuple(sorted({printable(name) for name in names}))


def _popen(
    where: Path,
    arguments: Collection[str],
    env: Mapping[str, str],
    holding: Collection[int],
    *,
    dies: bool = True,
) -> "subprocess.Popen[bytes]":
    return _start(where, arguments, {**_environment(where), **env}, holding, dies=dies)


def _start(
    where: Path,
    arguments: Collection[str],
    env: Mapping[str, str],
    holding: Collection[int],
    *,
    dies: bool = True,
    most_bytes: int = 0,
) -> "subprocess.Popen[bytes]":
    limited = ("prlimit", f"--fsize={most_bytes}") if most_bytes and _dying() else ()
    return subprocess.Popen(
        [*(_dying() if dies else ()), *limited, "git", "-C", str(where), *arguments],
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=tuple(holding),
        start_new_session=True,
    )


@cache
def _dying() -> tuple[str, ...]:
    """Return the command prefix that kills a program when its starting thread ends in any way; empty outside Linux."""
    setpriv = shutil.which("setpriv")
    return (setpriv, "--pdeathsig", "KILL") if setpriv and sys.platform == "linux" else ()


def _environment(where: Path) -> dict[str, str]:
    """Build git's environment from scratch, since inherited GIT_* variables redirect git.

    GIT_CEILING_DIRECTORIES keeps git from finding a repository around the folder.
    """
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C",
        "GIT_CEILING_DIRECTORIES": str(Path(os.path.realpath(where)).parent),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_EDITOR": ":",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_PAGER": "cat",
        "GIT_TERMINAL_PROMPT": "0",
        **_as_environment(_CONFIG),
        **_IDENTITY,
    }


def _kill(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def _last_lines(output: bytes) -> str:
    return "\n".join(output.decode("utf-8", "backslashreplace").strip().splitlines()[-LAST_LINES:])
