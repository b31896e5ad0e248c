"""The steps of scenarios, and built-in scenarios.

A step is a JSON object; its keys may be combined:

    {"text": "..."}                                     the assistant's text
    {"result": {...}}                                   its text with a fenced `service_result`, or claude's tool for it
    {"write_file": {"path": "a.txt", "content": "x"}}   a write, by any suitable tool of the request
    {"read_file": {"path": "a.txt"}}                    a read, likewise
    {"run": "ls -la"}                                   a shell command, likewise
    {"tool": {"name": "Write", "input": {...}}}         exactly this call; a text as input is for custom tools
    {"mcp": {"name": "trees", "input": {...}}}          a call of a tool of the MCP `server` (`service`)
    {"reasoning": "..."}                                its reasoning before that
    {"usage": {"input": 1000, "cached": 400, "cache_write": 30, "output": 50, "reasoning": 20}}
    {"usage": null}                                     no usage is reported
    {"fault": {"kind": ..., ...}}                       see below

`${cwd}` in any text becomes the program's work folder.

Kinds of faults; with `first`, only the first N requests of the step:

    status      answers HTTP `status` (500) with the protocol's error; `message`, `type`, `headers` are optional
    close       closes the connection without an answer
    truncate    sends the head of the stream, then closes the connection
    sse_error   sends the protocol's error in the middle of the stream
    hang        sends nothing until the program disconnects
    slow        waits `delay` seconds, then answers
    drip        waits `delay` seconds between the events of the stream

A scenario may also be computed from the prompt: a function of its text that yields steps, and is sent the output of
each call.
"""

from collections.abc import Callable, Generator, Sequence
from typing import Any

Step = dict[str, Any]
Play = Generator[Step, str, Any]
Scenario = list[Step] | Callable[[str], Play]
Scenarios = dict[str, Scenario]

USAGE = {"input": 1000, "cached": 400, "cache_write": 30, "output": 50, "reasoning": 20}
"""Default usage of a step."""


def steps_of(scenario: Scenario, prompt: str, outputs: Sequence[str]) -> list[Step]:
    """Return the steps of a scenario; of one that is computed, those up to the answer to these outputs."""
    if isinstance(scenario, list):
        return scenario
    play = scenario(prompt)
    return [next(play), *map(play.send, outputs)]  # which ends where the play does


def with_texts(value: Any, cwd: str) -> Any:
    """Return a step with the folder's path inserted in its texts."""
    if isinstance(value, str):
        return value.replace("${cwd}", cwd)
    if isinstance(value, list):
        return [with_texts(inner, cwd) for inner in value]
    if isinstance(value, dict):
        return {key: with_texts(inner, cwd) for key, inner in value.items()}
    return value


def _status(status: int, message: str, **more: Any) -> Step:
    return {"fault": {"kind": "status", "status": status, "message": f"scripted {message}"} | more}


_FILE: Step = {"write_file": {"path": "hello.txt", "content": "hello from the scripted model\n"}}
_LISTS: Step = {"findings": [], "tests_run": [], "needs": [], "delegations": []}
_MADE: Step = {
    "decision": "implemented",
    "summary": "Scripted answer.",
    "changes_made": ["hello.txt: created"],
    **_LISTS,
}
_SAID: Step = {"decision": "approved", "summary": "Scripted answer.", "changes_made": [], **_LISTS}
_WRITER: Step = {
    "id": "impl",
    "ephemeral": {"runtime": "runtime_a", "autonomy_policy": "workspace-write"},
    "action": "implement",
    "prompt": "Create hello.txt [[fake:write-file]]",
}
_CHECKER: Step = {
    "id": "check",
    "ephemeral": {"runtime": "runtime_b"},
    "action": "review",
    "prompt": "Check hello.txt [[fake:answer]]",
    "deps": ["impl"],
    "synthesis_rule": "verify",
}
_QUESTION: Step = {"id": "q1", "prompt": "Which port?", "choices": ["80", "8080"]}
_COMMIT = "git add -A && git -c user.name=t -c user.email=t@example.invalid commit -m scripted"

BUILT_IN: Scenarios = {
    "answer": [{"result": _SAID}],
    "plain": [{"text": "OK"}],
    "think": [{"reasoning": "Short scripted reasoning.", "result": _SAID}],
    "write-file": [{"text": "I will create the file.", **_FILE}, {"result": _MADE}],
    "run-shell": [{"run": "echo shell-was-here > shell.txt && cat shell.txt"}, {"result": _MADE}],
    "write-and-run": [_FILE, {"run": "git status --short"}, {"result": _MADE}],
    "write-outside": [
        {"write_file": {"path": "../outside.txt", "content": "must not exist\n"}},
        {"result": _MADE | {"decision": "failed"}},
    ],
    "commit": [_FILE, {"run": _COMMIT}, {"result": _MADE}],
    "slow-tool": [{"run": "python3 -c 'import time; time.sleep(120)'; echo done"}, {"result": _MADE}],
    "no-result": [{"text": "I looked at the repository and everything seems fine."}],
    "bad-json": [{"text": '```json\n{"service_result": {"decision": "approved", \n```'}],
    "empty": [{"text": ""}],
    "no-usage": [{"result": _SAID, "usage": None}],
    "delegate": [{"result": _SAID | {"summary": "Two workers.", "delegations": [_WRITER, _CHECKER]}}],
    "human-question": [{"result": _SAID | {"decision": "blocked", "human_questions": [_QUESTION]}}],
    "http-400": [_status(400, "bad request")],
    "http-401": [_status(401, "invalid key")],
    "http-403": [_status(403, "forbidden")],
    "http-404": [_status(404, "unknown model")],
    "http-429": [_status(429, "rate limit")],
    "http-500": [_status(500, "server error")],
    "http-503": [_status(503, "unavailable")],
    "http-529": [_status(529, "overload")],
    "flaky": [_status(500, "server error", first=1) | {"result": _SAID}],
    "flaky-429": [_status(429, "rate limit", first=1, headers={"retry-after": "1"}) | {"result": _SAID}],
    "close": [{"fault": {"kind": "close"}}],
    "truncate": [{"fault": {"kind": "truncate"}, "result": _SAID}],
    "truncate-once": [{"fault": {"kind": "truncate", "first": 1}, "result": _SAID}],
    "hang": [{"fault": {"kind": "hang"}}],
    "slow": [{"fault": {"kind": "slow", "delay": 20}, "result": _SAID}],
    "drip": [{"fault": {"kind": "drip", "delay": 1.0}, "result": _SAID}],
    "sse-error": [{"fault": {"kind": "sse_error", "message": "scripted stream error"}}],
    "write-then-500": [_FILE, _status(500, "server error")],
}
