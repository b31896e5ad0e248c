"""The `shell` runtime: any command that reads the prompt and prints a result."""

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from activities.agents.adapter import Launch, ProgramCall, ProgramReport
from activities.agents.environment import environment
from activities.agents.faults import Failed
from activities.agents.streams import busiest, model_of
from activities.runs.output import read_bounded
from activities.runs.regular_files import opened
from activities.runs.supervised_run import RunEnd
from workflows.model.spend import Usage

TEXT_LIMIT = 16 * 1024 * 1024
"""Bytes of output, from its end, in which a result is looked for."""

STDERR_LIMIT = 4096
LINE_LIMIT = 4096
"""A usage line is short; anything longer is not one."""


class Shell:
    """Runs the agent's registered command, or the one the settings put in a runtime's place."""

    def __init__(
        self, granted: Iterable[str], environ: Mapping[str, str] = os.environ, command: Iterable[str] = ()
    ) -> None:
        self._granted = tuple(granted)
        self._environ = dict(environ)
        self._command = tuple(command)

    def require(self) -> None:
        """Nobody knows what a command needs."""

    def tries_in_vain(self, stdout: Path) -> bool:
        """Nor what it says."""
        del stdout
        return False

    def launch(self, call: ProgramCall) -> Launch:
        """The command; it has no sessions."""
        argv = call.run.assignment.worker.command or self._command
        return Launch(argv, environment(call.run, self._granted, self._environ), call.prompt)

    def read(self, call: ProgramCall, end: RunEnd) -> ProgramReport:
        """The end of the output, and the sum of the usage lines in all of it; any exit code but 0 is a failure."""
        fault = None
        if end.exit_code or end.signal:
            how = f"signal {end.signal}" if end.signal else f"exit code {end.exit_code}"
            lines = read_bounded(end.stderr, 0, STDERR_LIMIT).text.strip().splitlines()
            fault = Failed(f"the agent's program ended with {how}{f': {lines[-1][:300]}' if lines else ''}")
        try:
            file = opened(end.stdout)
        except FileNotFoundError:
            return ProgramReport(b"", Usage(), fault=fault)
        with file:
            usage, used = Usage(), Counter[str]()
            for line in _usage_lines(file):
                usage += line.usage
                used.update({line.model: line.usage.total} if line.model else {})
            file.seek(max(0, file.tell() - TEXT_LIMIT))
            return ProgramReport(file.read(TEXT_LIMIT), usage, model=busiest(used), fault=fault)


@dataclass(frozen=True)
class _UsageLine:
    """Tokens, and the model they are to be priced by; without one, a shell agent's cost nothing."""

    usage: Usage
    model: str | None


def _usage_lines(file: BinaryIO) -> Iterator[_UsageLine]:
    """`{"type":"usage","input_tokens":N,"output_tokens":N,"model":"NAME"}`, one per line; `model` may be left out."""
    starts_line = True
    while piece := file.readline(LINE_LIMIT):
        if starts_line and piece.startswith(b"{") and b'"usage"' in piece and (usage := _usage(piece)):
            yield usage
        starts_line = piece.endswith(b"\n")


def _usage(line: bytes) -> _UsageLine | None:
    try:
        value = json.loads(line)
    except ValueError:
        return None
    if not isinstance(value, dict) or value.get("type") != "usage":
        return None
    counts = [value.get(key, 0) for key in ("input_tokens", "output_tokens")]
    if any(type(count) is not int or count < 0 for count in counts):
        return None
    return _UsageLine(Usage(input_tokens=counts[0], output_tokens=counts[1]), model_of(value.get("model")))
