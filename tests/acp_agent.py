"""A fake agent that speaks ACP, and misbehaves as its prompt says: `python acp_agent.py`, standard library only.

A prompt names what it does as `[[acp:NAME]]`, the last one counts; `DEEDS` has the names. It counts its starts in the
file `starts` of its home, and keeps its sessions in the file `sessions`, so that a later process can resume one. With
`FAKE_HOME` its home is a folder of its task below that one.
"""

import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SHARED = os.environ.get("FAKE_HOME", "")
HOME = Path(SHARED, os.environ.get("SERVICE_ROOT_JOB_ID", "")) if SHARED else Path(os.environ["HOME"])
CAN = {"loadSession": True, "sessionCapabilities": {} if os.environ.get("FAKE_LOADS") else {"resume": {}}}
RESULT = '{"service_result": {"decision": "approved", "summary": "fine"}}'
IMPLEMENTED = '{"service_result": {"decision": "implemented", "summary": "done", "changes_made": ["a.txt: made"]}}'
OPTIONS = [
    {"optionId": "for-good", "kind": "allow_always", "name": "Always"},
    {"optionId": "yes", "kind": "allow_once", "name": "Yes"},
    {"optionId": "no", "kind": "reject_once", "name": "No"},
]
USAGE = {"inputTokens": 1000, "outputTokens": 50, "totalTokens": 1050}


def write(message: Any) -> None:
    sys.stdout.write(message if isinstance(message, str) else json.dumps({"jsonrpc": "2.0", **message}))
    sys.stdout.write("\n")
    sys.stdout.flush()


def read() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    message: dict[str, Any] = json.loads(line)
    return message


class Turn:
    """One prompt, and what the agent does with it."""

    def __init__(self, number: Any, session: str) -> None:
        self.number, self.session = number, session

    def update(self, record: str, /, **fields: Any) -> None:
        params = {"sessionId": self.session, "update": {"sessionUpdate": record, **fields}}
        write({"method": "session/update", "params": params})

    def say(self, text: str, **more: Any) -> None:
        for piece in (text[:10], text[10:]):
            self.update("agent_message_chunk", content={"type": "text", "text": piece}, **more)

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        write({"id": "mine", "method": method, "params": {"sessionId": self.session, **params}})
        while (answer := read()).get("id") != "mine":
            if answer.get("method") == "session/cancel":
                (HOME / "cancelled").touch()
        return answer

    def permitted(self, kind: str, **call: Any) -> str:
        tool = {"toolCallId": f"c-{kind}", "kind": kind, **call}
        outcome = self.ask("session/request_permission", toolCall=tool, options=OPTIONS)["result"]["outcome"]
        return str(outcome.get("optionId", outcome["outcome"]))

    def end(self, reason: str = "end_turn", **more: Any) -> None:
        write({"id": self.number, "result": {"stopReason": reason, **more}})

    def good(self) -> None:
        self.say(RESULT)
        self.end(usage=USAGE)


def works(turn: Turn) -> None:
    turn.update("agent_thought_chunk", content={"type": "text", "text": "Where is it?"})
    turn.update("plan", entries=[{"content": "look", "status": "completed"}, {"content": "write", "status": "pending"}])
    call = {"toolCallId": "t1", "kind": "edit", "title": "write a.txt", "rawInput": {"path": "a.txt"}}
    turn.update("tool_call", **call, status="pending")
    if turn.permitted("edit", toolCallId="t1", locations=[{"path": str(Path.cwd() / "a.txt")}]) == "yes":
        Path("a.txt").write_text("by acp\n")
    done = [{"type": "content", "content": {"type": "text", "text": "written"}}]
    turn.update("tool_call_update", toolCallId="t1", status="completed", content=done)
    turn.say(IMPLEMENTED)
    turn.end(usage=USAGE)


def leads(turn: Turn) -> None:
    """Delegate, and in the same session be content with what came of it."""
    if sum(json.loads(line)[0] == turn.session for line in (HOME / "prompts").read_text().splitlines()) > 1:
        return turn.good()
    legs: list[dict[str, Any]] = [
        {"id": "make", "action": "implement", "prompt": "Make it. [[acp:works]]"},
        {"id": "check", "action": "review", "prompt": "Check it. [[acp:good]]"}
        | {"deps": ["make"], "synthesis_rule": "verify"},
    ]
    result = {"decision": "approved", "summary": "delegated", "delegations": [{"agent": "mine"} | leg for leg in legs]}
    turn.say(json.dumps({"service_result": result}))
    return turn.end()


def waits(turn: Turn) -> None:
    """Show a plan, and work once the file `go` is there."""
    turn.update("plan", entries=[{"content": "wait for it", "status": "in_progress"}])
    (HOME / "began").write_text(str(os.getpid()))
    while not (HOME / "go").exists():
        time.sleep(0.05)
    works(turn)


def is_limited_once(turn: Turn) -> None:
    if len((HOME / "starts").read_text()) > 1:
        return turn.good()
    return write({"id": turn.number, "error": {"code": -32603, "message": "429 Too Many Requests"}})


def asks_for_all(turn: Turn) -> None:
    inside, git = str(Path.cwd() / "a.txt"), str(Path.cwd() / ".git" / "config")
    answers = [
        turn.permitted("read"),
        turn.permitted("edit", locations=[{"path": inside}]),
        turn.permitted("delete", locations=[{"path": git}]),
        turn.permitted("move", locations=[{"path": "/etc/passwd"}]),
        turn.permitted("execute"),
        turn.permitted("no-such-kind"),
        turn.permitted("edit", toolCallId="c-nowhere"),
    ]
    (HOME / "answers").write_text(" ".join(answers))
    turn.good()


def is_held_by_itself(turn: Turn) -> None:
    """Refuse a tool without a word to the client, as copilot does, and claim to have worked."""
    turn.update("tool_call", toolCallId="t1", kind="execute", title="make it", rawInput={"command": "make"})
    denied = {"message": "Permission to run this tool was denied", "code": "denied"}
    turn.update("tool_call_update", toolCallId="t1", status="failed", rawOutput=denied)
    turn.say(IMPLEMENTED)
    turn.end()


def tells_results_in_many_forms(turn: Turn) -> None:
    forms: list[dict[str, Any]] = [
        {
            "content": [{"type": "diff", "path": "a.txt", "oldText": None, "newText": "x"}],
            "rawOutput": {"fileName": "x"},
        },
        {"rawOutput": {"content": "from content"}},
        {"rawOutput": {"message": "from message"}},
        {"rawOutput": "plain"},
        {"rawOutput": {"odd": 1}},
        {"rawOutput": ["odd"]},
        {},
    ]
    for number, form in enumerate(forms):
        turn.update("tool_call_update", toolCallId=f"t{number}", status="completed", **form)
    turn.good()


def asks_for_what_is_off(turn: Turn) -> None:
    answers = [turn.ask(method, path="/etc/passwd") for method in ("fs/read_text_file", "terminal/create", "x/y")]
    answers.append(turn.ask("elicitation/create", message="Which port?", mode="form"))
    (HOME / "answers").write_text(json.dumps(answers))
    turn.good()


def floods(turn: Turn) -> None:
    for number in range(20_000):
        write({"method": "session/update", "params": {"update": {"sessionUpdate": "usage_update", "used": number}}})
        write(f"log line {number}")
    turn.good()


def sends_a_line_without_end(turn: Turn) -> None:
    sys.stdout.write("x" * (17 * 1024 * 1024))
    sys.stdout.write("\n")
    turn.good()


def sends_nonsense(turn: Turn) -> None:
    for line in ("no json", "[1, 2]", '"text"', "null", "[" * 5000, "{}", '{"jsonrpc": "2.0"}'):
        write(line)
    odd_ids: tuple[Any, ...] = (None, True, 1.5, [], {}, "3", 999, -1)
    for odd in odd_ids:
        write({"id": odd, "result": {"stopReason": "end_turn"}})
    write({"id": turn.number, "method": "session/request_permission", "params": []})
    write({"id": None, "method": "fs/read_text_file", "params": None})
    write({"method": "session/update", "params": {"update": {"sessionUpdate": "plan", "entries": "many"}}})
    write({"method": "session/update", "params": {"update": ["tool_call"]}})
    turn.update("tool_call", toolCallId=7, rawInput="odd", status=["completed"])
    turn.update("agent_message_chunk", content="plain")
    turn.good()


def ends_twice(turn: Turn) -> None:
    turn.say(RESULT)
    sys.stdout.write(
        (json.dumps({"jsonrpc": "2.0", "id": turn.number, "result": {"stopReason": "end_turn"}}) + "\n") * 2
    )
    sys.stdout.flush()


def never_ends(turn: Turn) -> None:
    (HOME / "began").touch()
    time.sleep(600)


def reads_nothing(turn: Turn) -> None:
    for number in range(6):
        write({"id": number, "method": "x" * (14 * 1024 * 1024), "params": {}})
    time.sleep(600)


def is_deaf(turn: Turn) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    never_ends(turn)


def closes_its_output(turn: Turn) -> None:
    os.close(1)
    time.sleep(600)


def asks_after_its_end(turn: Turn) -> None:
    turn.good()
    turn.permitted("execute", toolCallId="late")


def asks_after_it_was_cancelled(turn: Turn) -> None:
    (HOME / "began").touch()
    while read().get("method") != "session/cancel":
        pass
    (HOME / "answers").write_text(turn.permitted("read"))
    turn.end("cancelled")


DEEDS: dict[str, Callable[[Turn], None]] = {
    "good": Turn.good,
    "works": works,
    "leads": leads,
    "waits": waits,
    "rate-limit-once": is_limited_once,
    "asks-for-all": asks_for_all,
    "asks-for-what-is-off": asks_for_what_is_off,
    "held-by-itself": is_held_by_itself,
    "many-forms": tells_results_in_many_forms,
    "floods": floods,
    "long-line": sends_a_line_without_end,
    "nonsense": sends_nonsense,
    "ends-twice": ends_twice,
    "never-ends": never_ends,
    "reads-nothing": reads_nothing,
    "deaf": is_deaf,
    "closes-output": closes_its_output,
    "asks-after-end": asks_after_its_end,
    "asks-after-cancel": asks_after_it_was_cancelled,
    "dies": lambda _: os._exit(7),
    "is-killed": lambda _: os.kill(os.getpid(), 9),
    "says-nothing": lambda turn: turn.end(),
    "refuses": lambda turn: turn.end("refusal"),
    "ends-without-reason": lambda turn: write({"id": turn.number, "result": None}),
    "rate-limit": lambda turn: write(
        {"id": turn.number, "error": {"code": -32603, "message": "429 Too Many Requests"}}
    ),
    "odd-error": lambda turn: write({"id": turn.number, "error": "no"}),
}


def main() -> None:
    HOME.mkdir(exist_ok=True)
    with open(HOME / "starts", "a") as starts:
        starts.write("x")
    kept = HOME / "sessions"
    while True:
        message = read()
        method, params, number = message.get("method"), message.get("params") or {}, message.get("id")
        match method:
            case "initialize":
                own = HOME / "version"
                info = {"name": "fake", "version": own.read_text() if own.exists() else "1.2.3"}
                ways = [{"id": "login", "name": "Log in", "description": "Run `fake login`"}]
                write(
                    {
                        "id": number,
                        "result": {
                            "protocolVersion": 1,
                            "agentCapabilities": CAN,
                            "agentInfo": info,
                            "authMethods": ways,
                        },
                    }
                )
            case "session/new" if os.environ.get("FAKE_LOGGED_OUT"):
                write({"id": number, "error": {"code": -32000, "message": "Authentication required"}})
            case "session/new":
                with open(kept, "a") as sessions:
                    session = f"s-{len(kept.read_text().split()) + 1}"
                    sessions.write(f"{session}\n")
                modes = {"availableModes": [{"id": "ask"}, {"id": "code"}], "currentModeId": "ask"}
                model = {
                    "id": "model",
                    "category": "model",
                    "type": "select",
                    "currentValue": "m1",
                    "options": [{"value": "m1", "name": "M1"}, {"value": "m2", "name": "M2"}],
                }
                write({"id": number, "result": {"sessionId": session, "modes": modes, "configOptions": [model]}})
            case "session/resume":
                if params["sessionId"] in (kept.read_text().split() if kept.exists() else []):
                    write({"id": number, "result": {}})
                else:
                    write({"id": number, "error": {"code": -32002, "message": "Session not found"}})
            case "session/load":
                turn = Turn(number, params["sessionId"])
                turn.say("said before")
                turn.update("tool_call", toolCallId="old", kind="edit", rawInput={"path": "old"}, status="completed")
                write({"id": number, "result": {}})
            case "session/set_mode" | "session/set_config_option":
                with open(HOME / "chosen", "a") as chosen:
                    chosen.write(f"{params.get('modeId') or params.get('value')}\n")
                write({"id": number, "result": {}})
            case "session/prompt":
                text = params["prompt"][0]["text"]
                names = re.findall(r"\[\[acp:([a-z-]+)\]\]", text)
                with open(HOME / "prompts", "a") as prompts:
                    prompts.write(json.dumps([params["sessionId"], text]) + "\n")
                DEEDS[names[-1] if names else "good"](Turn(number, params["sessionId"]))
            case _:
                pass


if __name__ == "__main__":
    main()
