"""Other tools that use the service by MCP: their real programs, added as a person adds them, with a scripted model."""

import json
import os
import re
import subprocess
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.e2e.programs import available, variables
from tests.e2e.script import Script
from tests.scripted_model import ScriptedModel
from tests.scripted_model.scenarios import Step

Play = Generator[Step, str, str]
"""Calls of a client, each of which is sent the answer of the tool."""

TOOLS = ("trees", "start", "follow", "waiting", "answer", "look", "changes", "finish", "stop")
JOB = re.compile(r"job-[0-9a-z]{12}")
MOVES = re.compile(r"state\W+(running|queued|ending)")
PROMPT = "Have the team do it."
SECONDS = 300


def round_of(text: str) -> dict[str, Any]:
    """Return the first open round that an answer tells of."""
    number, digest = re.search(r"round\W+(\d+)", text), re.search(r"digest\W+([0-9a-f]{64})", text)
    return {"round": int(number[1]) if number else 0, "digest": digest[1] if digest else ""}


class Person:
    """A person's home on this machine, with programs that were told of the service."""

    def __init__(self, script: Script, folder: Path, model: ScriptedModel) -> None:
        self.script, self.model, self.folder = script, model, folder
        self.home, self.work = folder / "person", folder / "work"
        self.home.mkdir(parents=True)
        self.work.mkdir()
        places = [str(Path(command).parent) for command in available().values()]
        own = variables(folder / "programs", model) | {"HOME": str(self.home)}
        script.service.extra.update(own, PATH=os.pathsep.join([*places, os.environ["PATH"]]))
        self.answers: dict[str, str] = {}
        """Answers of the tools in the current play."""

    @contextmanager
    def with_the_service(self, client: str, scope: str) -> Iterator[None]:
        """Add the service to a client, twice as people do, and take it out again."""
        service = self.script.service
        service("mcp", "add", client, "--scope", scope)
        try:
            assert "nothing was changed" in service("mcp", "add", client).stdout
            yield
        finally:
            service("mcp", "remove", client)

    def says(self, client: str, scenario: str) -> str:
        """Give a client a task without a terminal, and return what it wrote."""
        done = subprocess.run(
            self.command(client, f"{PROMPT} [[fake:{scenario}]]"),
            cwd=self.work,
            env=self.script.service.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    def command(self, client: str, prompt: str) -> list[str]:
        """Return the command that has a client work without a terminal."""
        if client == "claude":
            return ["claude", "-p", prompt, "--allowedTools", "mcp__service"]
        if client == "kimi":
            return ["kimi", "-p", prompt]
        provider = {"name": "svc", "base_url": f"{self.model.url()}/v1", "env_key": "SVC_ACCESS"}
        words = [f"model_providers.svc.{name}={json.dumps(value)}" for name, value in provider.items()]
        settings = ["model_provider=svc", 'model_providers.svc.wire_api="responses"', *words]
        given = [part for setting in settings for part in ("-c", setting)]
        return ["codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", *given, prompt]

    def play(self, client: str, play: Callable[[], Play], name: str) -> str:
        """Have a client make the calls of a play, and return what it wrote at the end."""
        self.answers = {}
        self.model.scenarios[name] = lambda _prompt: play()
        return self.says(client, name)

    def all_nine(self, key: str) -> Play:
        """Play a person's task from its start to its removal, by each of the nine tools."""
        yield from self._told("trees")
        job = yield from self._started(key)
        yield from self._followed(job)
        text = yield from self._told("waiting")
        yield from self._told("answer", job=job, answers={"store": "redis"}, **round_of(text.partition(job)[2]))
        yield from self._followed(job)
        yield from self._told("look", job=job, what="tree")
        yield from self._told("changes", job=job)
        yield from self._told("finish", job=job, how="merge")
        yield from self._told("stop", job=job, how="drop")
        yield {"text": job}
        return job

    def twice(self, key: str) -> Play:
        """Play a client that repeats a start, because no answer came."""
        first = yield from self._started(key)
        second = yield from self._started(key)
        yield {"text": f"{first} {second}"}
        return first

    def one(self, tool: str, **given: Any) -> Play:
        """Play one call."""
        yield from self._told(tool, **given)
        yield {"text": "done"}
        return tool

    def _started(self, key: str) -> Play:
        asked = {"agent": "lead", "message": "reach the goal", "repository": "acme/shop"}
        text = yield from self._told("start", **asked, request_id=key)
        named = JOB.search(text)
        return named[0] if named else "job-000000000000"

    def _followed(self, job: str) -> Play:
        while MOVES.search(text := (yield from self._told("follow", job=job))):
            pass
        return text

    def _told(self, tool: str, **given: Any) -> Play:
        self.answers[tool] = text = yield {"mcp": {"name": tool, "input": given}}
        return text
