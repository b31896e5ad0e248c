"""A client of the Agent Client Protocol: it gives an agent one prompt, and prints what the agent does (ruling S7).

A standalone program, standard library only, since the protocol's Python package takes ten times as long to start:
`python -I -S acp_player.py ORDER COMMAND...`, the order as JSON, the prompt on standard input. It runs in the box with
the agent that it starts, and prints a JSON record on each line. It decides permission requests, by the job's policy.
"""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator
from typing import Any

LINE_LIMIT = 16 * 1024 * 1024
"""Maximum length of an agent's line in bytes; longer ones are left out."""
TEXT_LIMIT = 1024 * 1024
"""Maximum characters of a record's text. A longer message becomes several records."""
UNREAD_LIMIT = 64 * 1024 * 1024
"""Maximum bytes that wait for an agent that reads nothing."""
MOST_NOTES = 20
"""The most notes about faulty lines of an agent."""
BEGIN_SECONDS = 120.0
"""Time limit of each answer before the prompt. Afterwards only the job's own limit holds."""
END_SECONDS = 2.0
"""How long an agent may take to end: after its input has ended, after SIGTERM, and after a cancelled prompt."""
FAILED, LOST, CANCELLED, KILLED = 1, 3, 130, 137
"""Exit codes: the agent failed; it can't go on in the session; the run was stopped; the agent was killed by SIGKILL."""
CHARACTERS_PER_TOKEN = 4

_AUTH_REQUIRED, _NOT_FOUND = -32000, -32601
_READS = ("read", "search", "think", "fetch")
_EDITS = ("edit", "delete", "move")
_PERMITTED = {"auto": _READS, "read-only": _READS, "workspace-write": (*_READS, *_EDITS)}
"""The kinds of tools that a policy permits. A policy that isn't listed permits all."""
_DENIED = "denied"
"""The code by which copilot tells that its own arguments (`held_by`) refused a tool."""
_PATHS = ("path", "file_path", "filePath", "filepath")

Json = dict[str, Any]


class AgentError(Exception):
    """The agent refused, broke the protocol, or ended."""

    def __init__(self, message: str, code: object = None, exit_code: int = FAILED) -> None:
        super().__init__(message)
        self.code, self.exit_code = code, exit_code


def permits(policy: str, kind: str, paths: Collection[str], folder: str) -> bool:
    """Return whether a policy permits a tool of this kind. Edits must name paths in the folder, and none in `.git`."""
    permitted = _PERMITTED.get(policy)
    if permitted is None or kind not in _EDITS:
        return permitted is None or kind in permitted
    return kind in permitted and bool(paths) and all(_is_inside(path, folder) for path in paths)


def _is_inside(path: str, folder: str) -> bool:
    root = os.path.realpath(folder)
    parts = os.path.relpath(os.path.realpath(os.path.join(root, path)), root).split(os.sep)
    return not path.startswith("~") and os.pardir not in parts and ".git" not in parts


def option(options: object, *, allowed: bool) -> str | None:
    """Return the option of a permission request that answers it once, or else for good; None if there is neither."""
    kinds = ("allow_once", "allow_always") if allowed else ("reject_once", "reject_always")
    offered = {_text(choice, "kind"): _text(choice, "optionId") for choice in _list(options)}
    return next((offered[kind] for kind in kinds if offered.get(kind)), None)


def _dict(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: object, *keys: str) -> str:
    for key in keys:
        value = _dict(value).get(key)
    return value if isinstance(value, str) else ""


def _count(value: object) -> int:
    return value if type(value) is int and 0 <= value < 2**53 else 0


def _say(record: str, /, **more: object) -> None:
    sys.stdout.write(json.dumps({"type": record, **more}) + "\n")
    sys.stdout.flush()


class _AcpProcess:
    """The agent's process, and JSON-RPC over its standard streams."""

    def __init__(self, command: list[str], player: "Player") -> None:
        self._player = player
        wakes, wakeup = os.pipe()
        for end in (wakes, wakeup):
            os.set_blocking(end, False)
        self._signals, self.stopping = wakes, 0
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        self._process = subprocess.Popen(
            command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin, self._process.stdout
        os.set_blocking(self._to.fileno(), False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._from, selectors.EVENT_READ)
        self._selector.register(wakes, selectors.EVENT_READ)
        self._line, self._skips, self._unsent = bytearray(), False, bytearray()
        self._calls, self._answer = 0, Json()
        self._faulty = 0
        self._is_silent = False

    def _on_signal(self, *_: object) -> None:
        self.stopping += 1

    def call(self, method: str, params: Json, seconds: float | None = None) -> Json:
        """Send a request, and return its result. Meanwhile, handle the agent's own messages.

        When the run is stopped, cancel the session's prompt and wait a moment for its result.
        """
        self._calls, self._answer = self._calls + 1, {}
        self._send({"id": self._calls, "method": method, "params": params})
        until = time.monotonic() + seconds if seconds else None
        cancelled = False
        while not self._answer:
            if self.stopping and not cancelled:
                if method != "session/prompt":
                    raise AgentError("stopped", exit_code=CANCELLED)
                self._send({"method": "session/cancel", "params": {"sessionId": params["sessionId"]}})
                cancelled, until = True, time.monotonic() + END_SECONDS
            if self.stopping > 1 or (until and time.monotonic() > until):
                late = f"it did not answer {method} in {seconds:g} s" if seconds else "stopped"
                raise AgentError(late, exit_code=FAILED if not self.stopping else CANCELLED)
            if self._is_silent:
                end, exit_code = self._end()
                raise AgentError(f"it {end} before it answered {method}", exit_code=exit_code)
            self._wait(until)
        if "error" in self._answer:
            error = _dict(self._answer["error"])
            details = _text(error, "data", "message") or _text(error, "data", "details") or _text(error, "data")
            says = _text(error, "message") or "an error without a message"
            raise AgentError(f"{says}: {details}" if details and details != says else says, error.get("code"))
        return _dict(self._answer.get("result"))

    def close(self) -> None:
        """End the agent: its input first, then by signals."""
        with contextlib.suppress(OSError):
            self._to.close()
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(END_SECONDS)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
        self._process.wait()
        if self._faulty > MOST_NOTES:
            _say("note", text=f"{self._faulty - MOST_NOTES} more faulty messages of the agent are left out")

    def _end(self) -> tuple[str, int]:
        try:
            status = self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            return "closed its output", FAILED
        if status >= 0:
            return f"ended with exit status {status}", FAILED
        return f"was ended by signal {-status}", KILLED if status == -signal.SIGKILL else FAILED

    def _send(self, message: Json) -> None:
        self._unsent += json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
        if len(self._unsent) > UNREAD_LIMIT:
            raise AgentError("it reads none of its messages")
        self._write()

    def _write(self) -> None:
        try:
            del self._unsent[: os.write(self._to.fileno(), self._unsent)]
        except BlockingIOError:
            pass
        except OSError:  # it has ended, which reading shows
            self._unsent.clear()
        registered = self._to in self._selector.get_map()
        if self._unsent and not registered:
            self._selector.register(self._to, selectors.EVENT_WRITE)
        elif registered and not self._unsent:
            self._selector.unregister(self._to)

    def _wait(self, until: float | None) -> None:
        """Wait for the agent or a signal, and handle what comes."""
        for key, _ in self._selector.select(None if until is None else max(0.0, until - time.monotonic())):
            if key.fileobj is self._to:
                self._write()
            elif key.fileobj is self._from:
                piece = os.read(self._from.fileno(), 256 * 1024)
                self._is_silent = not piece
                for line in self._lines(piece):
                    self._receive(line)
            else:
                os.read(self._signals, 64)

    def _lines(self, piece: bytes) -> Iterator[bytes]:
        *ends, rest = piece.split(b"\n")
        for end in ends:
            if not self._skips and len(self._line) + len(end) <= LINE_LIMIT:
                yield bytes(self._line + end)
            else:
                self._note("a line that is too long")
            self._line.clear()
            self._skips = False
        self._skips = self._skips or len(self._line) + len(rest) > LINE_LIMIT
        self._line += b"" if self._skips else rest

    def _receive(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            message = None
        method = _text(message, "method")
        if not isinstance(message, dict):
            if line.strip():
                self._note(f"a line that is no message: {line[:200].decode(errors='replace')}")
        elif method and "id" in message:
            try:
                reply = {"result": self._player.requested(method, _dict(message.get("params")))}
            except AgentError as refused:
                reply = {"error": {"code": refused.code, "message": str(refused)}}
            self._send({"id": message["id"], **reply})
        elif method:
            if method == "session/update":
                self._player.updated(_dict(message.get("params")))
        elif type(message.get("id")) is int and message["id"] == self._calls and not self._answer:
            self._answer = {"error": message["error"]} if "error" in message else {"result": message.get("result")}
        else:
            self._note(f"an answer to no request of ours: {line[:200].decode(errors='replace')}")

    def _note(self, what: str) -> None:
        self._faulty += 1
        if self._faulty <= MOST_NOTES:
            _say("note", text=f"the agent sent {what}")


class Player:
    """One prompt in one session."""

    def __init__(self, order: Json, command: list[str], folder: str) -> None:
        self._order, self._folder = order, folder
        self._agent = _AcpProcess(command, self)
        self._session, self._replays, self._model = "", False, ""
        self._pieces, self._length, self._kind = list[str](), 0, ""
        self._tools = dict[str, Json]()
        """Calls of tools by id, as far as updates describe them."""
        self._characters = dict.fromkeys(("input", "output"), 0)
        """Characters, from which tokens are estimated."""
        self._usage = Json()
        self._unknown = set[str]()

    def check(self, seconds: float) -> None:
        """Print the agent's name and version."""
        try:
            self._initialize(seconds)
        finally:
            self._agent.close()

    def play(self, prompt: str) -> None:
        """Give the agent the prompt and print what it does, until its end."""
        try:
            can = self._initialize()
            self._begin(can)
            self._characters["input"] += len(prompt)
            asked = {"sessionId": self._session, "prompt": [{"type": "text", "text": prompt}]}
            result = self._agent.call("session/prompt", asked)
            self._flush()
            self._count_tokens(result.get("usage"))
            self._close(_text(result, "stopReason"))
        finally:
            self._flush()
            self._say_usage()
            self._agent.close()

    def _close(self, reason: str) -> None:
        if self._agent.stopping:
            raise AgentError("stopped", exit_code=CANCELLED)
        if reason != "end_turn":
            raise AgentError(f"it stopped early: {reason or 'without a reason'}")

    def _initialize(self, seconds: float = BEGIN_SECONDS) -> Json:
        off = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
        offers = {"protocolVersion": 1, "clientCapabilities": off, "clientInfo": {"name": "service", "version": "1"}}
        result = self._agent.call("initialize", offers, seconds)
        if result.get("protocolVersion") != 1:
            raise AgentError(f"it speaks version {result.get('protocolVersion')} of the protocol, not 1")
        info = _dict(result.get("agentInfo"))
        _say("agent", name=_text(info, "name"), version=_text(info, "version"))
        return result

    def _begin(self, can: Json) -> None:
        """Resume the order's session, or begin one; then choose its mode, model and effort."""
        place = {"cwd": self._folder, "mcpServers": []}
        session = _text(self._order, "session")
        try:
            if session:
                result = self._resume(_dict(can.get("agentCapabilities")), {"sessionId": session, **place})
            else:
                result = self._agent.call("session/new", place, BEGIN_SECONDS)
        except AgentError as error:
            if error.code != _AUTH_REQUIRED:
                raise
            raise AgentError(f"it is not logged in: {error} ({_ways_in(can) or 'it names no way to log in'})") from None
        self._session = session or _text(result, "sessionId")
        if not self._session:
            raise AgentError("it began a session without an id")
        _say("session", id=self._session, resumed=bool(session))
        self._choose(result)

    def _resume(self, can: Json, asked: Json) -> Json:
        """Resume a session. Where only loading is known, the agent repeats the session, which is left out."""
        resumes = _dict(can.get("sessionCapabilities")).get("resume") is not None
        loads = can.get("loadSession") is True
        ways = [way for way, there in (("session/resume", resumes), ("session/load", loads)) if there]
        for way in ways:
            self._replays = way == "session/load"
            try:
                return self._agent.call(way, asked, BEGIN_SECONDS)
            except AgentError as error:
                if error.code in (None, _AUTH_REQUIRED):
                    raise
                if error.code != _NOT_FOUND or way == ways[-1]:  # some offer to resume, and can only load
                    raise AgentError(str(error), error.code, LOST) from None
            finally:
                self._replays = False
        raise AgentError("it can resume no session", exit_code=LOST)

    def _choose(self, session: Json) -> None:
        options = {
            _text(option, "category") or _text(option, "id"): option for option in _list(session.get("configOptions"))
        }
        if mode := _text(self._order, "mode"):
            modes = [_text(mode_there, "id") for mode_there in _list(_dict(session.get("modes")).get("availableModes"))]
            if mode in modes:
                self._agent.call("session/set_mode", {"sessionId": self._session, "modeId": mode}, BEGIN_SECONDS)
            else:
                self._set(options.get("mode"), "mode", mode)
        if model := _text(self._order, "model"):
            self._set(options.get("model"), "model", model)
        if (effort := _text(self._order, "effort")) and not self._set(options.get("thought_level"), "", effort):
            _say("note", text=f"the agent has no effort {effort}: it chooses its own")
        if "model" in options and not self._model:
            current = _text(options["model"], "currentValue")
            self._model = _name_of(current, dict(_choices(options["model"])).get(current, ""))

    def _set(self, among: object, what: str, wanted: str) -> bool:
        """Choose an option by its value or its name. Raise AgentError if it isn't offered, unless `what` is empty."""
        choices = dict(_choices(among))
        value = wanted if wanted in choices else next((key for key, name in choices.items() if name == wanted), None)
        if value is None:
            if what:
                offered = ", ".join(list(choices)[:10]) or "none"
                raise AgentError(f"unknown {what} {wanted}: it offers {offered}")
            return False
        chosen = {"sessionId": self._session, "configId": _text(among, "id"), "value": value}
        self._agent.call("session/set_config_option", chosen, BEGIN_SECONDS)
        if what == "model":
            self._model = _name_of(value, choices[value])
        return True

    def requested(self, method: str, params: Json) -> Json:
        """Answer a request of the agent. Raise AgentError for what it was told that it can't ask for."""
        match method:
            case "session/request_permission":
                return {"outcome": self._permission(params)}
            case "elicitation/create":
                self._flush()
                _say("note", text=f"declined a question, since nobody is there: {_text(params, 'message')[:1000]}")
                return {"action": "decline"}
            case _:
                if method not in self._unknown and len(self._unknown) < MOST_NOTES:
                    self._unknown.add(method)
                    _say("note", text=f"refused {method[:100]}, which the agent was told is not there")
                raise AgentError(f"{method} is not offered", _NOT_FOUND)

    def _permission(self, params: Json) -> Json:
        self._flush()
        call = self._known(_dict(params.get("toolCall")))
        policy, kind = _text(self._order, "policy"), _text(call, "kind") or "other"
        allowed = not self._agent.stopping and permits(policy, kind, _paths(call), self._folder)
        chosen = None if self._agent.stopping else option(params.get("options"), allowed=allowed)
        answer = "cancelled" if chosen is None else "allowed" if allowed else "refused"
        _say("permission", tool=_title(call), kind=kind, answer=answer)
        return {"outcome": "selected", "optionId": chosen} if chosen else {"outcome": "cancelled"}

    def updated(self, params: Json) -> None:
        """Print what a notification tells of the session."""
        update = _dict(params.get("update"))
        if self._replays:
            return
        match _text(update, "sessionUpdate"):
            case "agent_message_chunk":
                self._add("message", update)
            case "agent_thought_chunk":
                self._add("thought", update)
            case "tool_call" | "tool_call_update":
                self._flush()
                self._tool(update)
            case "plan":
                self._flush()
                steps = [(_text(entry, "status"), _text(entry, "content")) for entry in _list(update.get("entries"))]
                _say("plan", steps=[[status, text[:1000]] for status, text in steps[:100]])
            case _:
                pass

    def _add(self, kind: str, update: Json) -> None:
        """Add a piece to the message. A piece of another message prints the one before."""
        self._count_tokens(_dict(update.get("_meta")).get("usage"), adds=True)
        text, message = _text(update, "content", "text"), f"{kind} {_text(update, 'messageId')}"
        if not text:
            return
        if message != self._kind or self._length + len(text) > TEXT_LIMIT:
            self._flush()
        self._kind = message
        self._pieces.append(text[:TEXT_LIMIT])
        self._length += len(self._pieces[-1])
        self._characters["output"] += len(text)

    def _flush(self) -> None:
        if self._pieces:
            _say(self._kind.partition(" ")[0], text="".join(self._pieces))
        self._pieces, self._length = [], 0

    def _known(self, update: Json) -> Json:
        """Return all that is known of a tool's call; agents tell it in pieces."""
        call = _text(update, "toolCallId")
        if call not in self._tools and len(self._tools) >= 1000:
            self._tools.pop(next(iter(self._tools)))
        known = self._tools.setdefault(call, {})
        known.update({key: value for key, value in update.items() if value not in (None, "", [], {})})
        return known

    def _tool(self, update: Json) -> None:
        call = self._known(update)
        ends = _text(update, "status") in ("completed", "failed")
        if not call.get("shown") and (ends or _dict(call.get("rawInput"))):
            call["shown"] = True
            given = json.dumps(call.get("rawInput"))
            self._characters["output"] += len(given)
            short = call.get("rawInput") if len(given) <= TEXT_LIMIT else {}
            shown = {"name": _title(call), "kind": _text(call, "kind"), "input": short, "paths": _paths(call)[:100]}
            _say("tool", call=_text(call, "toolCallId"), **shown)
        if ends and not call.get("ended"):
            call["ended"] = True
            if _text(call, "rawOutput", "code") == _DENIED:
                _say("permission", tool=_title(call), kind=_text(call, "kind"), answer="refused")
            text = _output(call)
            self._characters["input"] += len(text)
            _say("result", call=_text(call, "toolCallId"), text=text[:TEXT_LIMIT], failed=call["status"] == "failed")

    def _count_tokens(self, usage: object, *, adds: bool = False) -> None:
        """Note the tokens that the agent reports: for the prompt, or with `adds` for one request to its model."""
        counted = {key: _count(_dict(usage).get(f"{key}Tokens")) for key in ("input", "output")}
        if any(counted.values()):
            before = self._usage if adds else {}
            self._usage = {key: before.get(key, 0) + value for key, value in counted.items()}

    def _say_usage(self) -> None:
        estimated = {key: -(-count // CHARACTERS_PER_TOKEN) for key, count in self._characters.items()}
        _say("usage", reported=self._usage or None, estimated=estimated, model=self._model or None)


def _ways_in(can: Json) -> str:
    methods = [_text(way, "description") or _text(way, "name") for way in _list(can.get("authMethods"))]
    return "; ".join(filter(None, methods))[:500]


def _choices(among: object) -> Iterator[tuple[str, str]]:
    """Yield the values of an option with their names, also of those in groups."""
    for choice in _list(_dict(among).get("options")):
        if "options" in _dict(choice):
            yield from _choices(choice)
        elif value := _text(choice, "value"):
            yield value, _text(choice, "name")


def _name_of(value: str, name: str) -> str:
    """Return a model's name: its value, unless that is a program's own mark."""
    return value if value[:1].isalnum() else name


def _title(call: Json) -> str:
    return (_text(call, "title") or _text(call, "_meta", "toolName") or _text(call, "kind") or "tool")[:1000]


def _paths(call: Json) -> list[str]:
    """Return the paths that a tool's call names."""
    places = [_text(place, "path") for place in (*_list(call.get("locations")), *_list(call.get("content")))]
    given = [_text(call.get("rawInput"), key) for key in _PATHS]
    return list(dict.fromkeys(path for path in (*places, *given) if path))


def _output(call: Json) -> str:
    """Return a tool's output as text: its content, or else what it gave back."""
    parts = _list(call.get("content"))
    texts = [_text(part, "content", "text") or _text(part, "path") for part in parts]  # a diff has a path
    raw = call.get("rawOutput")
    text = "\n".join(filter(None, texts)) or (raw if isinstance(raw, str) else _text(raw, "content"))
    return text or _text(raw, "message") or (json.dumps(raw) if raw else "")


def main() -> int:
    """Play an order, or check the agent if the order says in how many seconds. Return the exit code."""
    order, command = json.loads(sys.argv[1]), sys.argv[2:]
    try:
        player = Player(order, command, os.getcwd())
        if "check" in order:
            player.check(order["check"])
        else:
            player.play(sys.stdin.read())
    except AgentError as error:
        _say("error", message=str(error), code=error.code, lost=error.exit_code == LOST)
        if error.exit_code == KILLED:
            os.kill(os.getpid(), signal.SIGKILL)  # so the run ends as that of any program that was killed
        return error.exit_code
    except OSError as error:
        _say("error", message=f"it cannot be started: {error.strerror}", code=None, lost=False)
        return FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
