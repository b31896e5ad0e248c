"""Agents that end at once: `/bin/sh`, which execs a `cat` of an answer in a file."""

import json
from collections.abc import Iterable
from pathlib import Path

AT_ONCE = 8
"""Number of programs that run at once: a host's default."""

_SCRIPT = """\
case $SERVICE_CONTINUATION in
  none | "") exec /bin/cat "$1" ;;
  *) exec /bin/cat "$2" ;;
esac
"""


def write(folder: Path, sizes: Iterable[int]) -> None:
    """Write the program, and the answers of coordinators that delegate so many legs."""
    (folder / "agent.sh").write_text(_SCRIPT)
    answer_of(folder, None).write_text(_result())
    for legs in sizes:
        delegations = [{"id": f"l{n}", "agent": "dev", "action": "ask", "prompt": f"do l{n}"} for n in range(legs)]
        answer_of(folder, legs).write_text(_result(delegations=delegations))


def answer_of(folder: Path, legs: int | None) -> Path:
    """Return the file with the answer of a coordinator of so many legs, or of an agent that delegates nothing."""
    return folder / ("done.json" if legs is None else f"plan-{legs}.json")


def command(folder: Path, first: Path, later: Path) -> tuple[str, ...]:
    """Return a command with one answer for a job's begin, and another for its continuation."""
    return ("/bin/sh", str(folder / "agent.sh"), str(first), str(later))


def _result(**more: object) -> str:
    return json.dumps({"service_result": {"decision": "approved", "summary": "done"} | more}) + "\n"
