"""The adapter of agents that speak the Agent Client Protocol (ruling S7), which `acp_player` speaks in their box."""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from activities.agents import acp_player
from activities.agents.adapter import Launch, ProgramCall, ProgramReport
from activities.agents.entries import Entry, EntryKind, note_entry, text_entry, tool
from activities.agents.faults import Failed, Fault, SessionLost, cut, kind_of
from activities.agents.installed_program import Driver
from activities.agents.streams import Messages, Record, chunks, count, model_of, records, text_of
from activities.boxes.programs import required_files
from activities.runs.supervised_run import RunEnd
from activities.runs.supervisor import EndKind
from activities.runtimes.programs import UsageScope
from workflows.contract.locate import KEY
from workflows.model.spend import Usage

PLAYER = (sys.executable, "-I", "-S", acp_player.__file__)
REFUSED = "refused"
NAME_LIMIT = 100
_MARKS = {"completed": "x", "in_progress": ">"}
"""How a plan's steps are marked; others are open."""


def check_command(seconds: float, command: Sequence[str]) -> tuple[str, ...]:
    """Return a command that prints an agent's name and version for `name_in`, and ends after this time."""
    return (*PLAYER, json.dumps({"check": seconds}), *command)


def name_in(output: str) -> tuple[str, str]:
    """Return the agent's name and version from the output of a check, and the error in it."""
    lines = {line.get("type"): line for line in records([output.encode()])}
    agent, error = lines.get("agent"), text_of(lines.get("error"), "message")
    name = " ".join(filter(None, (text_of(agent, "name"), text_of(agent, "version"))))
    return (name[:NAME_LIMIT] or "an agent without a name" if agent else ""), error


@dataclass
class _Stream:
    """The parsed records of a run."""

    messages: Messages = field(default_factory=Messages)
    session: str | None = None
    model: str | None = None
    reported: Usage | None = None
    estimated: Usage = field(default_factory=Usage)
    refused: list[str] = field(default_factory=list)
    error: Record | None = None


class Acp(Driver):
    """The adapter of one agent program that speaks ACP. Its player is the process that is supervised."""

    def launch(self, call: ProgramCall) -> Launch:
        """Return the player's command line with the agent's. The prompt is its standard input."""
        installed, asked = self._installed, call.run.assignment
        program, policy = installed.program, asked.worker.autonomy_policy
        installed.servers({}, installed.users)
        order = {
            "policy": policy,
            "session": call.session,
            "mode": installed.modes.get(policy),
            "model": None if program.model_option else asked.model,
            "effort": asked.effort,
        }
        model = installed.model(asked.model) if program.model_option else ()
        command = (*installed.start, *program.held_by.get(policy, ()), *model, *installed.arguments)
        own = {**program.sets, **program.held_with.get(policy, {})}
        env = installed.environment(call, **own)
        launch = installed.launch(call, (*PLAYER, json.dumps(order), *command), env, call.prompt, {})
        files = (
            path
            for words in (PLAYER, command)
            for path in required_files(words, env.get("PATH"), Path(env.get("HOME", "/")))
        )
        return replace(launch, read=(*launch.read, *files))

    def read(self, call: ProgramCall, end: RunEnd) -> ProgramReport:
        """Read the player's records. Tokens are the agent's own count only if it is known to count right."""
        stream = _read(end)
        usage = stream.reported
        if estimated := usage is None or self._installed.program.counts is UsageScope.ESTIMATED:
            usage = _larger(usage or Usage(), stream.estimated)
        fault = self._fault(call, end, stream)
        session = stream.session or call.session
        report = self._installed.report(stream.messages.text, usage, session, stream.model, fault)
        return replace(report, refused=tuple(stream.refused), estimated=estimated)

    def _fault(self, call: ProgramCall, end: RunEnd, stream: _Stream) -> Fault | None:
        installed = self._installed
        if early := installed.early_fault(call, end):
            return early
        if end.kind is not EndKind.EXITED:
            return None
        if end.exit_code:
            message = text_of(stream.error, "message")
            if call.session and (stream.error or {}).get("lost") is True:
                return SessionLost(f"{installed.program.name} cannot go on in its session: {cut(message)}")
            if not stream.session and (missing := installed.missing()):
                return missing
            return installed.fault(message) if message else installed.crash(end)
        text, pattern = stream.messages.text.decode(errors="replace"), installed.program.own_errors
        own = pattern.search(text) if pattern and KEY not in text else None
        if own and kind_of(own[1]):
            return installed.fault(own[1])
        if text or stream.refused:  # some agents end without a word after a refusal: a repair asks for the result
            return None
        runtime = call.run.assignment.worker.runtime
        return Failed(f"{installed.program.name} on {runtime} ended without saying anything")


def _larger(one: Usage, other: Usage) -> Usage:
    return Usage(
        input_tokens=max(one.input_tokens, other.input_tokens),
        output_tokens=max(one.output_tokens, other.output_tokens),
    )


def _usage(value: object) -> Usage:
    return Usage(input_tokens=count(value, "input"), output_tokens=count(value, "output"))


def _read(end: RunEnd) -> _Stream:
    stream = _Stream()
    for line in records(chunks(end.stdout)):
        match line.get("type"):
            case "message":
                stream.messages.add(line.get("text"))
            case "session":
                stream.session = text_of(line, "id") or None
            case "permission" if line.get("answer") == REFUSED:
                stream.refused.append(text_of(line, "tool") or "a tool")
            case "usage":
                stream.reported = _usage(line.get("reported")) if line.get("reported") else None
                stream.estimated, stream.model = _usage(line.get("estimated")), model_of(line.get("model"))
            case "error":
                stream.error = line
            case _:
                pass
    return stream


def entries(line: Record) -> Iterator[Entry]:
    """Yield the transcript's entries of a record."""
    match line.get("type"):
        case "agent":
            yield from note_entry(f"{text_of(line, 'name')} {text_of(line, 'version')}, by ACP")
        case "session":
            yield from note_entry(f"session {text_of(line, 'id')}")
        case "message":
            yield from text_entry(line.get("text"))
        case "thought":
            yield from text_entry(line.get("text"), EntryKind.THOUGHT)
        case "plan":
            yield from note_entry("\n".join(["plan:", *_steps(line.get("steps"))]))
        case "tool":
            yield _call(line)
        case "result":
            failed = line.get("failed") is True
            yield Entry(kind=EntryKind.RESULT, text=text_of(line, "text"), call=text_of(line, "call"), failed=failed)
        case "permission":
            answer = text_of(line, "answer")
            yield from note_entry(f"permission {answer}: {text_of(line, 'tool')}", failed=answer == REFUSED)
        case "note":
            yield from note_entry(text_of(line, "text"))
        case "error":
            yield from note_entry(text_of(line, "message"), failed=True)
        case "usage":
            reported = line.get("reported")
            yield Entry(
                kind=EntryKind.USAGE,
                text="as the agent says" if reported else "estimated",
                usage=_usage(reported or line.get("estimated")),
            )
        case _:
            pass


def _call(line: Record) -> Entry:
    given, name = line.get("input"), text_of(line, "name")
    entry = tool(text_of(line, "kind") or name, given or name, text_of(line, "call"))
    paths = line.get("paths") if line.get("kind") in ("edit", "delete", "move") else None
    files = tuple(path for path in paths if isinstance(path, str)) if isinstance(paths, list) else ()
    return entry.model_copy(update={"files": files[:100]})


def _steps(steps: object) -> Iterator[str]:
    for step in steps if isinstance(steps, list) else ():
        match step:
            case [str(status), str(text)]:
                yield f"[{_MARKS.get(status, ' ')}] {text}"
            case _:
                pass
