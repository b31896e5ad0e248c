"""A fork server with supervisors that wait if a run's folder has a pipe called `held`."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.append(str(Path(__file__).resolve().parents[3]))

from activities.boxes.control_group import JobGroup
from activities.runs import fork_server, supervisor

supervise = supervisor.main


def hold(run_dir: Path, key: bytes, group: JobGroup) -> None:
    """Wait until something is written to the pipe, then supervise."""
    if (run_dir / "held").exists():
        (run_dir / "held").read_text()
    supervise(run_dir, key, group)


if __name__ == "__main__":
    supervisor.main = hold
    fork_server.main()
