"""A model that has a real program play the plan of its case: it runs the shell's agent, and says what that says."""

import json
import re
from dataclasses import replace
from typing import Any

from tests.chaos.controller import subject_of
from tests.e2e.programs import PROGRAMS, installed
from tests.scripted_model import ScriptedModel
from tests.scripted_model.scenarios import Play
from tests.scripted_model.server import Turn
from tests.scripted_model.wire import Asked, Protocol

PROGRAM = "codex"
KEY = re.compile(r"case-[0-9a-z]*")
ANSWER = re.compile(r'\{"service_result".*\}')
KEPT = ("PLANS", "SVC_ACCESS")
"""Variables that the program has of the daemon's."""


class Model(ScriptedModel):
    """The model of a stack."""

    def __init__(self) -> None:
        super().__init__({"answer": self._obey})
        self.agent = ""
        """The command of the shell's agent."""
        self.loses, self.lost = set[str](), set[str]()
        """The trees of which the next reply is to be lost, and those of which one was."""

    def _obey(self, prompt: str) -> Play:
        key = KEY.search(prompt)
        output = yield {"run": f"echo {key[0] if key else ''} | {self.agent}"}
        answer = ANSWER.search(output.replace('\\"', '"'))
        yield {"text": answer[0] if answer else output}

    def turn(self, protocol: Protocol, asked: Asked, *more: Any, **named: Any) -> Turn | None:
        turn, tree = super().turn(protocol, asked, *more, **named), subject_of(asked.cwd)
        if turn is None or tree not in self.loses:
            return turn
        self.loses.remove(tree)
        self.lost.add(tree)
        return replace(turn, fault={"kind": "truncate"})

    def section(self, *variables: str) -> str:
        """Return the settings of the program's runtime; it tries again as often as it does by itself."""
        provider = {"name": "svc", "base_url": f"{self.url()}/v1", "env_key": "SVC_ACCESS", "wire_api": "responses"}
        words = ["model_provider=svc", *(f"model_providers.svc.{key}={value}" for key, value in provider.items())]
        arguments = [part for word in words for part in ("-c", word)]
        return (
            f'[runtimes.{PROGRAMS[PROGRAM]}]\nbox = "none"\ncommand = {json.dumps([installed()[PROGRAM]])}\n'
            f"arguments = {json.dumps(arguments)}\nenv = {json.dumps([*KEPT, *variables])}\n"
        )
