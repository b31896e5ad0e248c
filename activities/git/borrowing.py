"""An empty repository that borrows the objects of a checkout, to speak to another machine with secrets.

Configuration that agents could write into the checkout does not apply there: no hook, program, other address or proxy,
no skipping of certificates.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from activities.git.command import git, line
from activities.git.registered import common_directory


@contextmanager
def borrowed(repo: Path) -> Iterator[Path]:
    """Make an empty repository that borrows the objects of another, and delete it afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="service-git-"))
    try:
        _borrow(folder, repo)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _borrow(folder: Path, repo: Path) -> None:
    common = common_directory(repo)
    form = line(repo, "rev-parse", "--show-object-format")
    git(folder, "init", "--quiet", "--bare", "--template=", f"--object-format={form}")
    (folder / "objects" / "info").mkdir(parents=True, exist_ok=True)
    (folder / "objects" / "info" / "alternates").write_bytes(bytes(common / "objects") + b"\n")
    if (common / "shallow").exists():
        shutil.copyfile(common / "shallow", folder / "shallow")
