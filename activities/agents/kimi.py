"""Kimi Code: `kimi -p`, whole messages on a stream, errors on standard error, tokens only in its session's file."""

import json
import shlex
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from activities.agents import kimi_guard, program_folder
from activities.agents.adapter import Launch, ProgramCall, ProgramReport
from activities.agents.entries import Entry, EntryKind, content_of, note_entry, text_entry, tool
from activities.agents.faults import Failed, Fault
from activities.agents.installed_program import Driver
from activities.agents.streams import Messages, Record, busiest, chunks, count, file_chunks, model_of, records, text_of
from activities.boxes.programs import required_files
from activities.runs.regular_files import create
from activities.runs.supervised_run import RunEnd
from activities.runs.supervisor import EndKind
from activities.settings import toml
from workflows.contract.models import AutonomyPolicy
from workflows.model.spend import Usage

PROMPT = "SERVICE_PROMPT"
"""Variable with the path of a run's prompt."""

ASKS = "Your instructions are the hook result before this line: do what they say."
"""Prompt on the command line. By it the hook recognises the run's prompt among those of the agent's own helpers."""

TOOLS = "Write|Edit|Bash|Agent|AgentSwarm|mcp__.*"
"""Tools that change something, or start something that may; the effects of MCP servers' tools are unknown."""

_ERROR = "error: "
_PROMPT_ECHO = "UserPromptSubmit hook\n"
"""Beginning of the line in which Kimi repeats the hook's prompt."""

_INPUT = ("input_tokens", "prompt_tokens", "inputOther", "inputCacheRead", "inputCacheCreation")
_WRITERS = ("Write", "Edit")
_EXIT_CODE = "Command failed with exit code: "
_OUTPUT = ("output_tokens", "completion_tokens", "output")


@dataclass
class _Stream:
    """The parsed lines of a run."""

    messages: Messages
    session: str | None = None
    usage: Usage | None = None
    calls: dict[str, str] = field(default_factory=dict)
    """Tool of each call, by the call's id."""
    refused: list[str] = field(default_factory=list)


class Kimi(Driver):
    """The adapter of Kimi. It has no permission flags: its folder has a hook that refuses tools.

    A second hook there supplies the prompt: Kimi takes none on standard input, and every account of the machine may
    read a command line (ruling N8). The command line names the prompt's file, in case the hook's result is lost.
    """

    def launch(self, call: ProgramCall) -> Launch:
        """Return the program's command line, and write its prompt to a file."""
        prompt = _write_prompt(call)
        policy = call.run.assignment.worker.autonomy_policy
        own = {kimi_guard.WORKTREE: str(call.cwd), PROMPT: str(prompt)}
        own |= {"KIMI_DISABLE_TELEMETRY": "1", "KIMI_CODE_NO_AUTO_UPDATE": "1"}
        env = self._installed.environment(call, **own)
        asks = f"{ASKS} If there is none, they are in the file {prompt}: read the whole of it first."
        argv = [*self._installed.start, *(("-S", call.session) if call.session else ()), "-p", asks]
        argv += ["--output-format", "stream-json"]
        if call.run.assignment.model and "KIMI_MODEL_API_KEY" in env:
            env["KIMI_MODEL_NAME"] = call.run.assignment.model
        else:
            argv += self._installed.model(call.run.assignment.model)
        argv += self._installed.arguments
        settings = {} if call.runs else self._settings(policy)
        launch = self._installed.launch(call, argv, env, None, settings)
        return replace(launch, read=(*launch.read, *self._own_files(), prompt), settings=(*launch.settings, prompt))

    def read(self, call: ProgramCall, end: RunEnd) -> ProgramReport:
        """Read the stream. Usage is the last usage object on any line, else the session's file has it."""
        stream = _read(end)
        session = stream.session or call.session or _session_in(call.home, call.cwd)
        used, model = _from_session(call.home, session, end.started_at)
        usage = (stream.usage or used).model_copy(update={"requests": used.requests})
        fault = self._fault(call, end, stream)
        report = self._installed.report(stream.messages.text, usage, session, model, fault)
        return replace(report, refused=tuple(stream.refused))

    def _own_files(self) -> tuple[Path, ...]:
        """Return the files of the policy hook and of its interpreter."""
        return required_files((sys.executable, kimi_guard.__file__), None, Path.home())

    def _settings(self, policy: AutonomyPolicy) -> dict[str, str]:
        """Return the settings of a job, with the hooks that enforce its policy and supply its prompt."""
        installed = self._installed
        settings = program_folder.pick(
            program_folder.read_toml(installed.users / "config.toml"), installed.program.settings_used
        )
        files = {"config.toml": toml.document({**settings, "hooks": _hooks(policy)})}
        path = installed.users / "mcp.json"
        if servers := installed.servers(program_folder.read_json(path).get("mcpServers"), path):
            files["mcp.json"] = json.dumps({"mcpServers": servers})
        return files

    def _fault(self, call: ProgramCall, end: RunEnd, stream: _Stream) -> Fault | None:
        if early := self._installed.early_fault(call, end):
            return early
        if end.kind is not EndKind.EXITED:
            return None
        if end.exit_code == 0:
            spoke = bool(stream.messages)
            return (
                None if spoke else Failed(f"kimi on {call.run.assignment.worker.runtime} ended without saying anything")
            )
        errors = [line for line in self._installed.stderr(end).splitlines() if line.startswith(_ERROR)]
        return self._installed.fault(errors[-1].removeprefix(_ERROR)) if errors else self._installed.crash(end)


def _hooks(policy: AutonomyPolicy) -> list[dict[str, object]]:
    gives = f'grep -qF "{ASKS}" && cat -- "${PROMPT}"'
    hooks: list[dict[str, object]] = [{"event": "UserPromptSubmit", "command": gives, "timeout": 30}]
    if policy is AutonomyPolicy.DANGER_FULL_ACCESS:
        return hooks
    held = AutonomyPolicy.READ_ONLY if policy is AutonomyPolicy.AUTO else policy  # auto grants nothing for certain
    guard = shlex.join((sys.executable, "-I", "-S", kimi_guard.__file__, held))
    command = f"{guard} || exit {kimi_guard.REFUSED}"
    return [{"event": "PreToolUse", "matcher": TOOLS, "command": command, "timeout": 30}, *hooks]


def _write_prompt(call: ProgramCall) -> Path:
    file = call.run_dir / "prompt.md"
    call.run_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    file.unlink(missing_ok=True)  # never follow a link
    with open(create(file), "wb") as made:
        made.write(call.prompt)
    return file


def _read(end: RunEnd) -> _Stream:
    stream = _Stream(Messages())
    for line in records(chunks(end.stdout)):
        match line.get("role"), line.get("type"):
            case "assistant", _ if not text_of(line, "content").startswith(_PROMPT_ECHO):
                stream.messages.add(line.get("content"))
                calls = line.get("tool_calls")
                for call in calls if isinstance(calls, list) else ():
                    stream.calls[text_of(call, "id")] = text_of(call, "function", "name")
            case "tool", _ if text_of(line, "content").startswith(kimi_guard.SAYS):
                stream.refused.append(stream.calls.get(text_of(line, "tool_call_id"), "a tool"))
            case "meta", "session.resume_hint":
                stream.session = text_of(line, "session_id") or None
            case _:
                pass
        if isinstance(line.get("usage"), dict):
            stream.usage = _usage(line["usage"])
    return stream


def _usage(value: object) -> Usage:
    return Usage(input_tokens=count(value, *_INPUT), output_tokens=count(value, *_OUTPUT))


def _session_in(home: Path, cwd: Path) -> str | None:
    """Return the latest session of a folder, because a failed run doesn't print its session."""
    places = {str(cwd), str(cwd.resolve())}
    lines = records(file_chunks(home / "session_index.jsonl"))
    sessions = [text_of(line, "sessionId") for line in lines if line.get("workDir") in places]
    return sessions[-1] if sessions else None


def _from_session(home: Path, session: str | None, since: float | None) -> tuple[Usage, str | None]:
    """Return the session's requests since the run began with their tokens, and the model; zero and None if unknown.

    Tokens are listed under the model's alias in Kimi's settings, and each request names the model of an alias.
    """
    if not session or since is None or "/" in session:
        return Usage(), None
    total, names, used = Usage(), dict[str, str | None](), Counter[str]()
    files = home.glob(f"sessions/*/{session}/agents/*/wire.jsonl")
    for line in (line for file in files for line in records(file_chunks(file))):
        match line:
            case {"type": "llm.request", "modelAlias": str(alias)}:
                names[alias] = model_of(line.get("model"))
            case {"type": "usage.record", "time": int() | float() as at} if at >= since * 1000:
                usage, alias = _usage(line.get("usage")), text_of(line, "model")
                total += usage.model_copy(update={"requests": 1})
                if model := names.get(alias) or model_of(alias):
                    used[model] += usage.total
    return total, busiest(used)


def entries(line: Record) -> Iterator[Entry]:
    """Yield the transcript's entries of a line. The line that repeats the prompt is left out."""
    match line.get("role"), line.get("type"):
        case "assistant", _ if not text_of(line, "content").startswith(_PROMPT_ECHO):
            yield from text_entry(line.get("content"))
            calls = line.get("tool_calls")
            for call in calls if isinstance(calls, list) else ():
                name, given = text_of(call, "function", "name"), text_of(call, "function", "arguments")
                yield tool(name, _arguments(given), text_of(call, "id"), writers=_WRITERS)
        case "tool", _:
            text, call = content_of(line.get("content")), text_of(line, "tool_call_id")
            yield Entry(kind=EntryKind.RESULT, text=text, call=call, failed=_has_failed(text))
        case "meta", "turn.step.retrying":
            yield from note_entry(f"tries again: {text_of(line, 'error_message')}", failed=True)
        case "meta", "session.resume_hint":
            yield from note_entry(f"session {text_of(line, 'session_id')}")
        case _:
            pass
    if isinstance(line.get("usage"), dict):
        yield Entry(kind=EntryKind.USAGE, text="this run", usage=_usage(line["usage"]))


def _has_failed(result: str) -> bool:
    """Return whether a call failed, by the words of its result: the stream has no mark for that."""
    return result.startswith((kimi_guard.SAYS, "Error")) or _EXIT_CODE in result[-2 * len(_EXIT_CODE) :]


def _arguments(given: str) -> object:
    try:
        return json.loads(given)
    except (ValueError, RecursionError):
        return given
