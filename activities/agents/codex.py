"""The Codex CLI: `codex exec --json`, prompt on standard input, usage of the whole session."""

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from glob import escape
from pathlib import Path

from activities.agents import program_folder
from activities.agents.adapter import Launch, ProgramCall, ProgramReport
from activities.agents.entries import MOST_FILES, Entry, EntryKind, argument_of, content_of, note_entry, text_entry
from activities.agents.faults import Failed, Fault
from activities.agents.installed_program import Driver
from activities.agents.streams import Messages, Record, chunks, file_chunks, model_of, records, text_of, usage_of
from activities.runs.output import read_bounded
from activities.runs.supervised_run import RunEnd
from activities.runs.supervisor import EndKind
from activities.settings import toml
from workflows.contract.models import AutonomyPolicy
from workflows.contract.schema import strict_schema
from workflows.model.spend import Usage

QUIET = (
    *("-c", "analytics.enabled=false", "-c", "check_for_update_on_startup=false"),
    *("--disable", "plugins", "--disable", "apps"),
)
NO_SECRETS = ("-c", "shell_environment_policy.ignore_default_excludes=false")
"""Hides variables with KEY, SECRET or TOKEN in their names from the commands the agent runs."""

OWN_PATH = ("-c", "allow_login_shell=false")
"""Forbids login shells, which would replace PATH and lose the machine's tools."""

OWN_WORKTREE_ONLY = ("-c", "sandbox_workspace_write.exclude_slash_tmp=true")
"""Protects the files of other jobs in /tmp; the job has its own temporary folder."""

SCHEMA = "result.schema.json"
PLAIN_LIMIT = 1024 * 1024

_SANDBOX = {
    AutonomyPolicy.AUTO: "read-only",
    AutonomyPolicy.READ_ONLY: "read-only",
    AutonomyPolicy.WORKSPACE_WRITE: "workspace-write",
    AutonomyPolicy.DANGER_FULL_ACCESS: "danger-full-access",
}

_REFUSALS = {
    "apply_patch": re.compile("patch rejected"),
    "a command": re.compile("Read-only file system|Operation not permitted|Permission denied|bwrap: "),
}
"""Messages of the program, its sandbox or the box about a refused write, by tool."""


@dataclass
class _Stream:
    """The parsed events of a run."""

    messages: Messages
    session: str | None = None
    usage: Usage = field(default_factory=Usage)
    finished: bool = False
    failure: str = ""
    events: int = 0


@dataclass
class _SessionFile:
    """The content of a session's file: the last turn's model, requests and refusals, and all tokens so far."""

    model: str | None = None
    usage: Usage | None = None
    requests: int = 0
    """Requests of the last turn."""
    refused: list[str] = field(default_factory=list)


class Codex(Driver):
    """The adapter of Codex. Each call passes sandbox, model and effort, because a resumed session forgets them."""

    def launch(self, call: ProgramCall) -> Launch:
        """Return the program's command line. `-s` must precede `resume`, which lacks that option and would default to
        read-only.
        """
        own_tmp = call.run_dir / "tmp"
        own_tmp.mkdir(mode=0o700, parents=True, exist_ok=True)
        sandbox = _SANDBOX[call.run.assignment.worker.autonomy_policy]
        argv = [*self._installed.start, "exec", "--json", "-s", sandbox, *QUIET, *NO_SECRETS, *OWN_PATH]
        if sandbox == "workspace-write":
            argv += OWN_WORKTREE_ONLY
        argv += self._installed.model(call.run.assignment.model)
        if call.run.assignment.effort:
            argv += ["-c", f"model_reasoning_effort={call.run.assignment.effort}"]
        settings = {} if call.runs else self._settings()
        if self._installed.structured:
            argv += ["--output-schema", str(call.home / SCHEMA)]
            settings |= {} if call.runs else {SCHEMA: json.dumps(strict_schema(leaf=not call.run.may_delegate))}
        argv += self._installed.arguments
        argv += ["resume", call.session, "-"] if call.session else ["-"]
        env = self._installed.environment(call, TMPDIR=str(own_tmp))
        return self._installed.launch(call, argv, env, call.prompt, settings)

    def _settings(self) -> dict[str, str]:
        """Return a job's settings: the permitted ones of the operator's, also within profiles."""
        path, wanted = self._installed.users / "config.toml", self._installed.program.settings_used
        users = program_folder.read_toml(path)
        settings = program_folder.pick(users, wanted)
        profiles = users.get("profiles")
        if isinstance(profiles, dict):
            reduced = {name: program_folder.pick(each, wanted) for name, each in profiles.items()}
            settings["profiles"] = reduced
        servers = self._installed.servers(users.get("mcp_servers"), path)
        return {"config.toml": toml.document(settings | ({"mcp_servers": servers} if servers else {}))}

    def holding(self, call: ProgramCall, command: tuple[str, ...]) -> tuple[str, ...]:
        """Return the command line that runs the command in Codex's sandbox, without an agent."""
        sandbox = _SANDBOX[call.run.assignment.worker.autonomy_policy]
        return (*self._installed.start, "sandbox", "-c", f"sandbox_mode={sandbox}", "--", *command)

    def read(self, call: ProgramCall, end: RunEnd) -> ProgramReport:
        """Read the stream. The session's tokens are in the last completed turn's event, else in the session's file.

        The model and the commands that the sandbox stopped are only in that file.
        """
        stream = _Stream(Messages())
        for event in records(chunks(end.stdout)):
            _take(stream, event)
        session = stream.session or call.session
        session_file = _read_session_file(call.home, session)
        usage = stream.usage if stream.finished else session_file.usage
        if usage is not None:
            usage = usage.model_copy(update={"requests": session_file.requests or None})
        fault = self._fault(call, end, stream)
        text = stream.messages.text
        if not stream.events and fault is None:  # a version without events prints plain text, and reports no usage
            text = read_bounded(end.stdout, 0, PLAIN_LIMIT).tail
        refused = session_file.refused or _refused_tools(self._installed.stderr(end))
        return replace(self._installed.report(text, usage, session, session_file.model, fault), refused=tuple(refused))

    def _fault(self, call: ProgramCall, end: RunEnd, stream: _Stream) -> Fault | None:
        if early := self._installed.early_fault(call, end):
            return early
        if end.kind is not EndKind.EXITED:
            return None
        if end.exit_code == 0 and not stream.failure:
            if stream.events and not stream.finished:
                return Failed(f"codex on {call.run.assignment.worker.runtime} ended in the middle of its turn")
            return None
        return self._installed.fault(stream.failure) if stream.failure else self._installed.crash(end)


def _read_session_file(home: Path, session: str | None) -> _SessionFile:
    """Read the session's file for the tokens of a failed turn, which its events do not report."""
    content = _SessionFile()
    files = home.glob(f"sessions/*/*/*/rollout-*{escape(session)}.jsonl") if session else ()
    for line in (line for file in files for line in records(file_chunks(file))):
        match line.get("type"), line.get("payload"):
            case "turn_context", {"model": named}:
                content.model = model_of(named) or content.model
            case _, {"type": "token_count", "info": {"total_token_usage": total}}:
                content.requests += (used := usage_of(total)) != content.usage
                content.usage = used
            case "event_msg", {"type": "task_started"}:
                content.refused.clear()
                content.requests = 0
            case _, {"type": "custom_tool_call_output" | "function_call_output", "output": output}:
                content.refused += _refused_tools(str(output))
            case _:
                pass
    return content


def _refused_tools(output: str) -> list[str]:
    return [tool for tool, sign in _REFUSALS.items() if sign.search(output)]


def _take(stream: _Stream, event: dict[str, object]) -> None:
    """Apply an event to the record of the run. Only `turn.failed` is a failure: an `error` before the end is often
    retried.
    """
    match event.get("type"):
        case "thread.started":
            stream.session = stream.session or text_of(event, "thread_id") or None
        case "item.completed" if text_of(event, "item", "type") == "agent_message":
            stream.messages.add(text_of(event, "item", "text"))
        case "turn.completed":
            stream.finished, stream.failure, stream.usage = True, "", usage_of(event.get("usage"))
        case "turn.failed":
            stream.finished, stream.failure = False, text_of(event, "error", "message") or "the turn failed"
        case "turn.started" | "item.started" | "item.updated" | "item.completed" | "error":
            pass
        case _:
            return
    stream.events += 1


def entries(event: Record) -> Iterator[Entry]:
    """Yield the transcript's entries of an event. The event that ends an item repeats the tool's call."""
    item = event.get("item")
    match event.get("type"):
        case "thread.started":
            yield from note_entry(f"session {text_of(event, 'thread_id')}")
        case "item.started" if isinstance(item, dict):
            yield from _call(item)
        case "item.completed" if isinstance(item, dict):
            yield from _item(item)
        case "turn.completed":
            yield Entry(kind=EntryKind.USAGE, text="the whole session", usage=usage_of(event.get("usage")))
        case "error":  # `turn.failed` repeats the last one
            yield from note_entry(text_of(event, "message"), failed=True)
        case _:
            pass


def _item(item: Record) -> Iterator[Entry]:
    """Yield the entries of an item that has ended."""
    failed = item.get("status") in ("failed", "declined")
    match item.get("type"):
        case "agent_message":
            yield from text_entry(item.get("text"))
        case "reasoning":
            yield from text_entry(item.get("text"), EntryKind.THOUGHT)
        case "error":
            yield from note_entry(text_of(item, "message"), failed=True)
        case "file_change":
            yield Entry(kind=EntryKind.FILES, tool="patch", files=_changed_files(item.get("changes")), failed=failed)
        case _:
            for call in _call(item):
                code = item.get("exit_code")
                failed = failed or bool(code) or bool(item.get("error"))
                output = content_of(item.get("aggregated_output") or _content(item))
                yield call.model_copy(update={"kind": EntryKind.RESULT, "text": output, "failed": failed})


def _call(item: Record) -> Iterator[Entry]:
    """Yield the tool's call of an item, if it has one."""
    kind = text_of(item, "type")
    if kind in ("", "agent_message", "reasoning", "error", "file_change"):
        return
    argument = item.get("command") or item.get("arguments") or item.get("query") or item.get("items")
    name = "shell" if kind == "command_execution" else text_of(item, "tool") or kind
    text = argument_of(_command(argument) if isinstance(argument, str) else argument)
    yield Entry(kind=EntryKind.TOOL, tool=name, argument=text, call=text_of(item, "id"))


def _content(item: Record) -> object:
    """Return the result or error of an MCP server's tool."""
    result = item.get("result")
    return (result.get("content") if isinstance(result, dict) else result) or text_of(item, "error", "message")


def _command(line: str) -> str:
    """Return a command without the shell that Codex wraps around it."""
    if not line.startswith(("/bin/bash -", "bash -", "/bin/sh -", "sh -")) or len(line) > _LONGEST_COMMAND:
        return line
    try:
        return shlex.split(line)[2]
    except (ValueError, IndexError):
        return line


_LONGEST_COMMAND = 65_536


def _changed_files(changes: object) -> tuple[str, ...]:
    listed = changes[:MOST_FILES] if isinstance(changes, list) else ()
    return tuple(path for change in listed if (path := text_of(change, "path")))
