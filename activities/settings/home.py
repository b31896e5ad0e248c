"""The service home: one private folder that holds everything the service keeps (ruling K4)."""

import errno
import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path

from activities.settings import closing
from workflows.model.errors import RefusedError, ServiceError


class HomeError(ServiceError):
    """There can be no home in that place: below a file, on a disk that is full or read-only."""

    code = "no_home"


@dataclass(frozen=True)
class Home:
    """Where each thing lives. Making it never touches the disk; `ensure` does."""

    root: Path

    @classmethod
    def locate(cls) -> "Home":
        """`SERVICE_HOME`, or `~/.service`."""
        return cls(Path(os.environ.get("SERVICE_HOME") or "~/.service").expanduser().absolute())

    def ensure(self) -> "Home":
        """Create the folder, private to its owner: the databases in it hold prompts in clear text.

        What other accounts could open is closed and told, and the secrets in it are replaced.
        """
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.trust()
            self._refuse_links()
            closing.close(self.root)
        except OSError as error:
            raise self._impossible(error) from None
        return self

    def _refuse_links(self) -> None:
        """What the service writes as it goes stays in the home, wherever a link at its place leads."""
        for folder in (self.logs, self.audit.parent):
            if folder.is_symlink():
                what = "a link" if folder.exists() else "a link that leads nowhere"
                raise RefusedError(f"{folder} is {what}: nothing is written through it", f"rm {folder}")

    def trust(self) -> None:
        """Refuse a home that another account owns or could write to: what stands in it says what is run (ruling N8)."""
        try:
            found = self.root.stat()
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._impossible(error) from None
        if not stat.S_ISDIR(found.st_mode):
            raise self._impossible(NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)))
        if found.st_uid != os.geteuid():
            who = _name(found.st_uid)
            raise RefusedError(
                f"the service home {self.root} belongs to the account {who}: nothing in it is read",
                f"run this as {who}  (or choose another home: export SERVICE_HOME=/some/folder)",
            )
        for folder in (self.root, *self.root.resolve().parents):
            others = 0o022 if folder == self.root else stat.S_IWOTH
            mode = folder.stat().st_mode
            if mode & others and not (mode & stat.S_ISVTX and folder != self.root):
                raise RefusedError(
                    f"other accounts may write to {folder}, so what stands in the service home may be theirs",
                    f"look at what is in {self.root}, then: chmod go-w {folder}",
                )

    def _impossible(self, error: OSError) -> HomeError:
        why = (
            "it is a file"
            if isinstance(error, (FileExistsError, NotADirectoryError)) and self.root.is_file()
            else error.strerror
        )
        return HomeError(f"{self.root} cannot be the service home: {why}", "export SERVICE_HOME=/some/folder")

    @property
    def config(self) -> Path:
        return self.root / "config.toml"

    @property
    def store(self) -> Path:
        return self.root / closing.STORE

    @property
    def artifacts(self) -> Path:
        return self.root / "artifacts"

    @property
    def runs(self) -> Path:
        """One folder per attempt of a job: prompt, output, exit."""
        return self.root / "runs"

    @property
    def orphans(self) -> Path:
        """What workers found left over at their start, a line of JSON each."""
        return self.logs / "orphans.jsonl"

    @property
    def runtimes(self) -> Path:
        """One folder per runtime: what its program needs that is the service's and not the user's."""
        return self.root / "runtimes"

    @property
    def worktrees(self) -> Path:
        return self.root / "worktrees"

    @property
    def boxes(self) -> Path:
        """What all boxes have in common."""
        return self.root / closing.FOR_AGENTS

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def seal_key(self) -> Path:
        """The key by which the service knows what it has written; its owner's alone."""
        return self.root / closing.KEY

    @property
    def seal_key_open(self) -> Path:
        """There when others could have read the seal key, until it is replaced."""
        return self.root / closing.KEY_OPEN

    @property
    def seal_key_new(self) -> Path:
        """There when the seal key was replaced, until all that is kept sealed is sealed with the new one."""
        return self.root / "seal.key.new"

    @property
    def opened(self) -> Path:
        """What of the home was found open to other accounts, a line of JSON each."""
        return self.root / closing.RECORD

    @property
    def temporal_db(self) -> Path:
        return self.root / "temporal.db"

    @property
    def server_lock(self) -> Path:
        """Held as long as a server has the database open: two servers on one file corrupt it."""
        return self.root / "temporal.lock"

    @property
    def daemon_lock(self) -> Path:
        return self.root / "daemon.lock"

    @property
    def daemon_state(self) -> Path:
        """Where the running group says what it is and where it listens."""
        return self.root / "daemon.json"

    @property
    def bridge_token(self) -> Path:
        """What callers of the HTTP bridge must show; its owner's alone."""
        return self.root / closing.TOKEN

    @property
    def bridge_tokens(self) -> Path:
        """The digests of the tokens that have a name and a scope; its owner's alone."""
        return self.root / closing.NAMED

    @property
    def bridge_ready(self) -> Path:
        """Written by the bridge when it listens, with its pid and address."""
        return self.root / "bridge.ready"

    @property
    def github_ready(self) -> Path:
        """Written by the process that speaks to GitHub when it works, with its pid."""
        return self.root / "github.ready"

    @property
    def commands_socket(self) -> Path:
        """Where the process that has everything imported takes commands that are typed in this home."""
        return self.root / "commands.sock"

    @property
    def commands_key(self) -> Path:
        """Who hands a command over shows that it has this file open for reading, which no box allows."""
        return self.root / "commands.key"

    @property
    def dashboard_links(self) -> Path:
        """One file for each link to the dashboard that was not opened yet."""
        return self.root / "dashboard-links"

    @property
    def audit(self) -> Path:
        """One line per call of the bridge by somebody who may."""
        return self.root / "audit" / "bridge.jsonl"

    @property
    def strangers(self) -> Path:
        """Calls of the bridge by anybody else; past so many a minute they are only counted."""
        return self.root / "audit" / "strangers.jsonl"

    @property
    def worker_ready(self) -> Path:
        """Written by the worker when it polls, with its pid."""
        return self.root / "worker.ready"


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
