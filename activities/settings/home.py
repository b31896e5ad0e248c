"""The service home: one private folder with all files of the service (ruling K4)."""

import errno
import os
import pwd
import shlex
import stat
from dataclasses import dataclass
from pathlib import Path

from activities.settings import secure_home
from workflows.model.errors import RefusedError, ServiceError


class HomeError(ServiceError):
    """The service home can't be there: the path is below a file, or the disk is full or read-only."""

    code = "no_home"


@dataclass(frozen=True)
class Home:
    """The paths in a service home. Only `ensure` touches the disk."""

    root: Path

    @classmethod
    def locate(cls) -> "Home":
        """Return the home at `SERVICE_HOME`, or `~/.service`."""
        return cls(Path(os.environ.get("SERVICE_HOME") or "~/.service").expanduser().absolute())

    def ensure(self) -> "Home":
        """Create the folder, private to its owner: the databases in it hold prompts in clear text.

        Files that other accounts could open are made private and reported, and secrets in them are replaced.
        """
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.trust()
            self._refuse_links()
            secure_home.close(self.root)
        except OSError as error:
            raise self._impossible(error) from None
        return self

    def _refuse_links(self) -> None:
        """Refuse links in place of folders that the service writes to: they could lead out of the home."""
        for folder in (self.logs, self.audit.parent):
            if folder.is_symlink():
                what = "a link" if folder.exists() else "a link that leads nowhere"
                raise RefusedError(f"{folder} is {what}: nothing is written through it", f"rm {folder}")

    def trust(self) -> None:
        """Refuse a home that another account owns or could write to: its files decide what is run (ruling N8)."""
        try:
            status = self.root.stat()
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._impossible(error) from None
        if not stat.S_ISDIR(status.st_mode):
            raise self._impossible(NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)))
        if status.st_mode & stat.S_ISVTX and status.st_mode & stat.S_IWOTH:
            raise RefusedError(
                f"{self.root} is shared by all accounts, so it cannot be the service home",
                f"export SERVICE_HOME={shlex.quote(str(self.root / 'service'))}",
            )
        if status.st_uid != os.geteuid():
            who = _name(status.st_uid)
            raise RefusedError(
                f"the service home {self.root} belongs to the account {who}: nothing in it is read",
                f"run this as {who}  (or choose another home: export SERVICE_HOME=/some/folder)",
            )
        for folder in (self.root, *self.root.resolve().parents):
            others = 0o022 if folder == self.root else stat.S_IWOTH
            mode = folder.stat().st_mode
            if mode & others and not (mode & stat.S_ISVTX and folder != self.root):
                raise RefusedError(
                    f"other accounts may write to {folder}, so files in the service home may be theirs",
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
        return self.root / secure_home.STORE

    @property
    def artifacts(self) -> Path:
        return self.root / "artifacts"

    @property
    def runs(self) -> Path:
        """Return the folder of runs, with one folder per attempt: prompt, output, exit."""
        return self.root / "runs"

    @property
    def orphans(self) -> Path:
        """Return the report of orphaned processes that workers found at their start, in lines of JSON."""
        return self.logs / "orphans.jsonl"

    @property
    def programs(self) -> Path:
        """Return the folder with the program folders of agents, by tree: logins, settings and sessions (ruling N2)."""
        return self.root / "programs"

    @property
    def worktrees(self) -> Path:
        return self.root / "worktrees"

    @property
    def mirrors(self) -> Path:
        """Return the folder with the bare mirrors of repositories that are known by their remote."""
        return self.root / "mirrors"

    @property
    def boxes(self) -> Path:
        """Return the folder with files that all boxes share, such as copies of /etc."""
        return self.root / secure_home.FOR_AGENTS

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def seal_key(self) -> Path:
        """Return the key that proves data to be the service's own; private to its owner."""
        return self.root / secure_home.KEY

    @property
    def seal_key_open(self) -> Path:
        """Return the file that exists while the seal key must be replaced because others could have read it."""
        return self.root / secure_home.KEY_OPEN

    @property
    def seal_key_new(self) -> Path:
        """Return the file that exists after the seal key's replacement until all stored data is sealed with the new
        key.
        """
        return self.root / "seal.key.new"

    @property
    def open_report(self) -> Path:
        """Return the report of files that were open to other accounts, in lines of JSON."""
        return self.root / secure_home.RECORD

    @property
    def temporal_db(self) -> Path:
        return self.root / "temporal.db"

    @property
    def server_lock(self) -> Path:
        """Return the lock that a server holds while it uses the database: two servers on one file corrupt it."""
        return self.root / "temporal.lock"

    @property
    def daemon_lock(self) -> Path:
        return self.root / "daemon.lock"

    @property
    def daemon_state(self) -> Path:
        """Return the file with the identity and addresses of the running daemon."""
        return self.root / "daemon.json"

    @property
    def bridge_token(self) -> Path:
        """Return the token that callers of the HTTP bridge must send; private to its owner."""
        return self.root / secure_home.TOKEN

    @property
    def bridge_tokens(self) -> Path:
        """Return the file with the digests of people's tokens, which have a name and a scope; private to its owner."""
        return self.root / secure_home.NAMED

    @property
    def bridge_ready(self) -> Path:
        """Return the file in which the bridge writes its pid and address once it listens."""
        return self.root / "bridge.ready"

    @property
    def github_ready(self) -> Path:
        """Return the file in which the GitHub process writes its pid once it works."""
        return self.root / "github.ready"

    @property
    def commands_socket(self) -> Path:
        """Return the socket on which a waiting process with loaded modules accepts commands typed for this home."""
        return self.root / "commands.sock"

    @property
    def commands_key(self) -> Path:
        """Return the key file of the commands socket: an open descriptor of it identifies the caller, and no box can
        read it.
        """
        return self.root / "commands.key"

    @property
    def dashboard_links(self) -> Path:
        """Return the folder with a file for each dashboard link that was not opened yet."""
        return self.root / "dashboard-links"

    @property
    def audit(self) -> Path:
        """Return the audit log of authorised calls of the bridge, one line each."""
        return self.root / "audit" / "bridge.jsonl"

    @property
    def strangers(self) -> Path:
        """Return the log of unauthorised calls of the bridge; above a rate per minute they are only counted."""
        return self.root / "audit" / "strangers.jsonl"

    @property
    def worker_ready(self) -> Path:
        """Return the file in which the worker writes its pid once it polls."""
        return self.root / "worker.ready"


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
