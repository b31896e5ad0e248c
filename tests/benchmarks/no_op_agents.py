"""Agents that are done at once: `/bin/sh`, which becomes a `cat` of an answer that stands in a file."""

import json
from collections.abc import Iterable
from pathlib import Path

AT_ONCE = 8
"""Programs that run at once, as many as a host runs by default."""

_SCRIPT = """\
case $SERVICE_CONTINUATION in
  none | "") exec /bin/cat "$1" ;;
  *) exec /bin/cat "$2" ;;
esac
"""


def write(folder: Path, sizes: Iterable[int]) -> None:
    """The program, and the answers of coordinators that delegate so many legs."""
    (folder / "agent.sh").write_text(_SCRIPT)
    answer_of(folder, None).write_text(_result())
    for legs in sizes:
        delegations = [{"id": f"l{n}", "agent": "dev", "action": "ask", "prompt": f"do l{n}"} for n in range(legs)]
        answer_of(folder, legs).write_text(_result(delegations=delegations))


def answer_of(folder: Path, legs: int | None) -> Path:
    """The file with the answer of a coordinator of so many legs, or of whoever delegates nothing."""
    return folder / ("done.json" if legs is None else f"plan-{legs}.json")


def command(folder: Path, first: Path, later: Path) -> tuple[str, ...]:
    """What gives one answer when a job begins, and another one when it goes on."""
    return ("/bin/sh", str(folder / "agent.sh"), str(first), str(later))


def _result(**more: object) -> str:
    return json.dumps({"service_result": {"decision": "approved", "summary": "done"} | more}) + "\n"
