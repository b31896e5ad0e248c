"""Claude Code: `claude -p`, prompt on standard input. The stream's last record, the envelope, has the result and the
tokens.
"""

import json
import os
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from activities.agents import program_folder
from activities.agents.adapter import Launch, ProgramCall, ProgramReport
from activities.agents.entries import Entry, EntryKind, content_of, note_entry, text_entry, tool
from activities.agents.faults import Failed, Fault
from activities.agents.installed_program import Driver
from activities.agents.streams import Messages, Record, busiest, chunks, count, model_of, records, text_of, usage_of
from activities.runs.supervised_run import RunEnd
from activities.runs.supervisor import EndKind
from activities.runtimes.known_runtimes import CLAUDE
from workflows.contract.models import AutonomyPolicy
from workflows.contract.schema import tool_schema
from workflows.contract.size_limits import MOST_TOKENS
from workflows.model.jobs import JobRun
from workflows.model.spend import Usage

ISOLATED = ("--setting-sources", "user", "--strict-mcp-config")
"""Keeps hooks and servers of the repository from running, even in a job that may only read."""

QUIET = ("DISABLE_AUTOUPDATER", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "CLAUDE_CODE_DISABLE_AUTO_MEMORY")
"""Variables that turn off features a job doesn't need, such as updates."""

VARIABLES = ("ANTHROPIC_*", "CLAUDE_CODE_*", "AWS_*", "CLOUD_ML_*", "VERTEX_*", "MAX_*_TOKENS", "BASH_*", "DISABLE_*")
"""Patterns of variables in the operator's settings that jobs get."""

STATE, SERVERS = ".claude.json", "mcp.json"
STATE_USED = ("primaryApiKey", "oauthAccount", "customApiKeyResponses", "hasCompletedOnboarding")
"""Keys of Claude's state that jobs get: those of the login. The other keys list folders and prompts."""

UNCHECKED = "auto mode could not check"
"""Exit code 1 with a complete, good envelope: an action was refused, and the run continued."""

_MODE = {
    # `plan` is not for reading: it asks a server whether a command is safe, and exits 1 if it cannot.
    AutonomyPolicy.AUTO: "dontAsk",
    AutonomyPolicy.READ_ONLY: "dontAsk",
    AutonomyPolicy.WORKSPACE_WRITE: "acceptEdits",
    AutonomyPolicy.DANGER_FULL_ACCESS: "bypassPermissions",
}
EXHAUSTED = "error_max_structured_output_retries"
"""Subtype of the envelope of a run whose results its tool refused, each of them: the reader names their faults."""

_WRITERS = ("Write", "Edit", "MultiEdit", "NotebookEdit", "Bash")
CHARACTERS_A_TOKEN = 4
_COUNTED = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
_SESSIONS = uuid.UUID("6f4a2a5e-8d0c-4c43-9b57-3f2f6a1f7b10")


@dataclass
class _Stream:
    """The parsed records of a run."""

    messages: Messages
    envelope: Record | None = None
    session: str | None = None
    resets_at: float | None = None
    model: str | None = None
    """Model of the latest message; before the first message, the model that the stream announced."""
    spent: dict[str, Usage] = field(default_factory=dict)
    """Tokens of each message, by its id; each request to the model has one message."""
    written: Counter[str] = field(default_factory=Counter)
    """Characters of each message."""


class Claude(Driver):
    """The adapter of Claude. Each call passes permission mode and model, because a resumed session forgets its mode."""

    def launch(self, call: ProgramCall) -> Launch:
        """Return the program's command line, with a session id that the service chose: a run that is cut short has a
        known session, too.
        """
        policy = call.run.assignment.worker.autonomy_policy
        session = ("--resume", call.session) if call.session else ("--session-id", session_of(call))
        settings = {} if call.runs else self._settings()
        servers = ("--mcp-config", str(call.home / SERVERS)) if SERVERS in settings else ()
        argv = [*self._installed.start, *ISOLATED, *servers, "--permission-mode", _MODE[policy], *session]
        argv += ["-p", "--output-format", "stream-json", "--verbose"]
        if self._installed.structured:
            argv += ["--json-schema", json.dumps(_schema(call.run))]
        argv += [*self._installed.model(call.run.assignment.model), *self._installed.arguments]
        own = dict.fromkeys(QUIET, "1")
        if policy is AutonomyPolicy.DANGER_FULL_ACCESS and os.geteuid() == 0:
            own["IS_SANDBOX"] = "1"  # as root it refuses to start without this
        env = self._installed.environment(call, **own)
        return self._installed.launch(call, argv, env, call.prompt, settings)

    def _settings(self) -> dict[str, str]:
        """Return a job's settings. Of the operator's variables they have only those of Claude and its model
        providers.
        """
        installed = self._installed
        users = program_folder.read_json(installed.users / "settings.json")
        settings = program_folder.pick(users, installed.program.settings_used)
        if isinstance(variables := settings.get("env"), dict):
            settings["env"] = program_folder.pick(
                variables, (*VARIABLES, *installed.program.passes, *installed.granted)
            )
        state = next(filter(Path.exists, (each / STATE for each in (installed.users, installed.users.parent))), None)
        known = program_folder.read_json(state) if state else {}
        files = {"settings.json": settings, STATE: program_folder.pick(known, STATE_USED)}
        if servers := installed.servers(known.get("mcpServers"), state or installed.users / STATE):
            files[SERVERS] = {"mcpServers": servers}
        return {name: json.dumps(content) for name, content in files.items()}

    def read(self, call: ProgramCall, end: RunEnd) -> ProgramReport:
        """Read the stream. The envelope counts the tokens of this run only, even in a resumed session. A stopped run
        has no envelope: its tokens are estimated from its messages.
        """
        stream = _read(end)
        usage = usage_of(stream.envelope.get("usage")) if stream.envelope else _so_far(stream)
        usage = usage.model_copy(update={"requests": len(stream.spent) or None})
        session = stream.session or call.session or session_of(call)
        fault = self._fault(call, end, stream)
        report = self._installed.report(stream.messages.text, usage, session, _model(stream), fault)
        return replace(report, refused=_refused_tools(stream))

    def _fault(self, call: ProgramCall, end: RunEnd, stream: _Stream) -> Fault | None:
        if early := self._installed.early_fault(call, end):
            return early
        if end.kind is not EndKind.EXITED:
            return None
        envelope = stream.envelope
        if envelope is None:
            if end.exit_code == 0:
                return Failed(
                    f"claude on {call.run.assignment.worker.runtime} ended without a result; was it interrupted?"
                )
            return self._installed.crash(end)
        if text_of(envelope, "subtype") == EXHAUSTED:
            return None
        if envelope.get("is_error") is not False:
            status = envelope.get("api_error_status")
            return self._installed.fault(_words(envelope), status if type(status) is int else None, stream.resets_at)
        if end.exit_code == 0 or (end.exit_code == 1 and UNCHECKED in self._installed.stderr(end)):
            return None
        return self._installed.crash(end)


def _schema(run: JobRun) -> dict[str, Any]:
    left = run.bounds_left
    return tool_schema(leaf=not run.may_delegate, width=left.width if left else 0)


def session_of(call: ProgramCall) -> str:
    """Return the id of a new run's session, derived from its folder."""
    return str(uuid.uuid5(_SESSIONS, str(call.run_dir.absolute())))


def _so_far(stream: _Stream) -> Usage:
    """Sum up the messages' tokens. Output tokens are estimated from the text's length: the stream counts them only at a
    message's beginning.
    """
    used = stream.spent.items()
    return Usage(
        input_tokens=min(MOST_TOKENS, sum(usage.input_tokens for _, usage in used)),
        output_tokens=min(
            MOST_TOKENS, sum(max(usage.output_tokens, stream.written[key] // CHARACTERS_A_TOKEN) for key, usage in used)
        ),
    )


def _words(envelope: Record) -> str:
    """Return an envelope's error text. Don't rely on `subtype`, which may claim success."""
    errors = envelope.get("errors")
    message = "; ".join(str(each) for each in errors) if isinstance(errors, list) else ""
    return text_of(envelope, "result") or message or text_of(envelope, "subtype") or "it failed and does not say why"


def _model(stream: _Stream) -> str | None:
    """Return the model with the most tokens in the whole session; without an envelope, the latest message's."""
    counts = stream.envelope.get("modelUsage") if stream.envelope else None
    items = counts.items() if isinstance(counts, dict) else ()
    used = {model: count(usage, *_COUNTED) for name, usage in items if (model := model_of(name))}
    return busiest(used) or stream.model


def _refused_tools(stream: _Stream) -> tuple[str, ...]:
    """Return the denied tools that can write files, from `permission_denials` in Claude's result."""
    denials = stream.envelope.get("permission_denials") if stream.envelope else None
    tools = (text_of(each, "tool_name") for each in (denials if isinstance(denials, list) else ()))
    return tuple(tool for tool in tools if tool in _WRITERS)


def _read(end: RunEnd) -> _Stream:
    stream = _Stream(Messages())
    for record in records(chunks(end.stdout)):
        stream.session = stream.session or text_of(record, "session_id") or None
        match record.get("type"):
            case "system":
                stream.model = model_of(record.get("model")) or stream.model
            case "assistant":
                _take_tokens(stream, record)
                if not record.get("parent_tool_use_id"):
                    _take_message(stream, record)
            case "rate_limit_event":
                _take_limit(stream, record)
            case "result":
                stream.envelope = record
            case _:
                pass
    if stream.envelope and (result := text_of(stream.envelope, "result")):
        stream.messages.add(result)
    return stream


def _take_message(stream: _Stream, record: Record) -> None:
    stream.model = model_of(text_of(record, "message", "model")) or stream.model
    for block in _blocks(record):
        if text_of(block, "type") == "text":
            stream.messages.add(text_of(block, "text"))
        elif isinstance(block, dict) and block.get("name") == CLAUDE.result_tool:
            stream.messages.add(json.dumps(block.get("input")))


def _take_tokens(stream: _Stream, record: Record) -> None:
    """Store a message's tokens, which each of its records repeats, and add the characters of this record's blocks."""
    message = record.get("message")
    if isinstance(message, dict) and (key := text_of(message, "id")):
        stream.spent[key] = usage_of(message.get("usage"))
        for block in _blocks(record):
            written = text_of(block, "text") or text_of(block, "thinking")
            called = block.get("input") if isinstance(block, dict) else None
            stream.written[key] += len(written) + (len(json.dumps(called, ensure_ascii=False)) if called else 0)


def _take_limit(stream: _Stream, record: Record) -> None:
    """Store when the exhausted rate limit ends; ignore records about limits that are not exhausted."""
    info = record.get("rate_limit_info")
    at = info.get("resetsAt") if isinstance(info, dict) and info.get("status") == "rejected" else None
    if isinstance(at, int | float) and not isinstance(at, bool):
        stream.resets_at = float(at)


def entries(record: Record) -> Iterator[Entry]:
    """Yield the transcript's entries of a record. Skip the envelope's text, which repeats the last message."""
    inner = bool(record.get("parent_tool_use_id"))
    match record.get("type"), record.get("subtype"):
        case "system", "init":
            yield from note_entry(f"model {text_of(record, 'model')}, session {text_of(record, 'session_id')}")
        case "system", "api_retry":
            yield from note_entry(f"tries again: {text_of(record, 'error') or record.get('error_status')}", failed=True)
        case "assistant", _:
            for block in _blocks(record):
                yield from _block(block, inner=inner)
        case "user", _:
            for block in _blocks(record):
                if text_of(block, "type") == "tool_result":
                    yield _result(block, inner=inner)
        case "result", _:
            if record.get("is_error") is not False:
                yield from note_entry(_words(record), failed=True)
            yield Entry(kind=EntryKind.USAGE, text="this run", usage=usage_of(record.get("usage")))
        case _:
            pass


def _blocks(record: Record) -> list[object]:
    message = record.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    return content if isinstance(content, list) else []


def _block(block: object, *, inner: bool) -> Iterator[Entry]:
    match text_of(block, "type"):
        case "text":
            yield from text_entry(text_of(block, "text"), inner=inner)
        case "thinking":
            yield from text_entry(text_of(block, "thinking"), EntryKind.THOUGHT, inner=inner)
        case "tool_use" if isinstance(block, dict):
            name, call = text_of(block, "name"), text_of(block, "id")
            yield tool(name, block.get("input"), call, writers=_WRITERS, inner=inner)


def _result(block: object, *, inner: bool) -> Entry:
    assert isinstance(block, dict)
    failed, call = block.get("is_error") is True, text_of(block, "tool_use_id")
    return Entry(kind=EntryKind.RESULT, text=content_of(block.get("content")), call=call, failed=failed, inner=inner)
