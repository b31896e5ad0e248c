"""The checkout that a folder is in."""

import subprocess
from pathlib import Path

from workflows.model.errors import NotFoundError, UsageError


def top_level(path: Path) -> Path:
    """Return the root of the repository that contains a folder."""
    path = path.expanduser().absolute()
    if not path.is_dir():
        raise NotFoundError(f"{path} is not a folder", "service repo add OWNER/NAME PATH")
    answer = subprocess.run(
        ["git", "-C", str(path), "rev-parse", "--is-bare-repository", "--show-toplevel"],
        capture_output=True,
        text=True,
        check=False,
    )
    match answer.stdout.splitlines():
        case ["true", *_]:
            return path
        case ["false", top]:
            return Path(top)
        case _:
            raise UsageError(f"{path} is not a git repository", f"git -C {path} init")
