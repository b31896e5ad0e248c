"""The `shell` runtime: any command that reads the prompt and prints a result."""

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from activities.agents.adapter import Launch, ProgramCall, ProgramReport
from activities.agents.entries import Entry, EntryKind
from activities.agents.environment import environment
from activities.agents.faults import Failed
from activities.agents.streams import Record, busiest, chunks, lines, model_of
from activities.runs.output import read_bounded
from activities.runs.supervised_run import RunEnd
from workflows.contract.size_limits import MOST_TOKENS
from workflows.model.spend import Usage

TEXT_LIMIT = 16 * 1024 * 1024
"""Bytes at the end of the output that are searched for a result."""

STDERR_LIMIT = 4096
LINE_LIMIT = 4096
"""Maximum length of a usage line."""


class Shell:
    """Runs the agent's registered command, or the command that the settings give the runtime."""

    def __init__(
        self, granted: Iterable[str], environ: Mapping[str, str] = os.environ, command: Iterable[str] = ()
    ) -> None:
        self._granted = tuple(granted)
        self._environ = dict(environ)
        self._command = tuple(command)

    def require(self) -> None:
        """No-op: a command's requirements are unknown."""

    def tries_in_vain(self, stdout: Path) -> bool:
        """Return False: a command's messages are unknown."""
        del stdout
        return False

    def renew_login(self) -> None:
        """No-op: a command's login is unknown."""

    def follow_login(self, call: ProgramCall) -> None:
        """No-op: a command's login is unknown."""

    def only_sessions(self, call: ProgramCall) -> None:
        """No-op: a command has no program folder."""

    def holding(self, call: ProgramCall, command: tuple[str, ...]) -> tuple[str, ...]:
        """Return the command unchanged."""
        del call
        return command

    def launch(self, call: ProgramCall) -> Launch:
        """Return the command's launch, without a session."""
        argv = call.run.assignment.worker.command or self._command
        return Launch(argv, environment(call.run, self._granted, self._environ), call.prompt)

    def read(self, call: ProgramCall, end: RunEnd) -> ProgramReport:
        """Return the end of the output, and the sum of its usage lines. A non-zero exit code is a failure."""
        fault = None
        if end.exit_code or end.signal:
            how = f"signal {end.signal}" if end.signal else f"exit code {end.exit_code}"
            lines = read_bounded(end.stderr, 0, STDERR_LIMIT).text.strip().splitlines()
            fault = Failed(f"the agent's program ended with {how}{f': {lines[-1][:300]}' if lines else ''}")
        text = read_bounded(end.stdout, 0, TEXT_LIMIT).tail
        return ProgramReport(text, *_sum_usage(end.stdout), fault=fault)


def _sum_usage(stdout: Path) -> tuple[Usage, None, str | None]:
    """Sum up lines of `{"type":"usage","input_tokens":N,"output_tokens":N,"model":"NAME"}`; `model` is optional.

    The model with the most tokens counts. If no line names one, the job's own model prices the tokens (ruling K5).
    """
    read = written = 0
    used = Counter[str]()
    for line in lines(chunks(stdout)):
        if line.startswith(b"{") and b'"usage"' in line and len(line) <= LINE_LIMIT and (usage := _usage(line)):
            tokens, model = usage
            read, written = read + tokens[0], written + tokens[1]
            if model:
                used[model] += sum(tokens)
    return Usage(input_tokens=min(MOST_TOKENS, read), output_tokens=min(MOST_TOKENS, written)), None, busiest(used)


def _usage(line: bytes) -> tuple[tuple[int, int], str | None] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    tokens = _tokens(value) if isinstance(value, dict) else None
    return (tokens, model_of(value.get("model"))) if tokens else None


def _tokens(value: Record) -> tuple[int, int] | None:
    """Return the input and output tokens of a usage line; None for any other line."""
    read, written = value.get("input_tokens", 0), value.get("output_tokens", 0)
    if value.get("type") != "usage" or type(read) is not int or type(written) is not int or min(read, written) < 0:
        return None
    return read, written


def entries(record: Record) -> Iterator[Entry] | None:
    """Return the transcript's entry of a usage line; None for all other lines, which are plain text."""
    tokens = _tokens(record)
    if tokens is None:
        return None
    read, written = (min(MOST_TOKENS, each) for each in tokens)
    return iter([Entry(kind=EntryKind.USAGE, usage=Usage(input_tokens=read, output_tokens=written))])
