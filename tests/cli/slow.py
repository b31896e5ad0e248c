"""Commands made to last, by patches in their process before they begin."""

import importlib
import os
import signal
import time
from functools import partial
from pathlib import Path
from typing import Any

from bridge.machine.step_messages import unheard
from bridge.operations.orders import new_jobs
from tests.rows import ROOT

SAYS = "this lasts"


def lasts(target: str) -> None:
    """Replace `module:function` by one that writes a file `lasts` in the home, and never ends."""
    module, _, name = target.partition(":")
    setattr(importlib.import_module(module), name, _forever)


def waits(target: str) -> None:
    """Delay `module:function` until there is a file `go` in the home."""
    module, _, name = target.partition(":")
    place = importlib.import_module(module)
    setattr(place, name, partial(_later, getattr(place, name)))


def starts() -> None:
    """Replace the start of a job by the existing tree."""

    async def job(*_: object, **__: object) -> str:
        return ROOT

    new_jobs.start = job


def is_not_told_of_the_end() -> None:
    """Ignore SIGHUP, as a job that its shell has disowned is sent none."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def go() -> None:
    """Let the delayed function begin."""
    _file("go").touch()


def _forever(*given: Any, **named: Any) -> None:
    step = named.get("step") or next((each for each in reversed(given) if callable(each)), unheard)
    step(SAYS)
    _file("lasts").touch()
    while True:
        time.sleep(1)


def _later(do: Any, *given: Any, **named: Any) -> Any:
    while not _file("go").exists():
        time.sleep(0.01)
    return do(*given, **named)


def _file(name: str) -> Path:
    return Path(os.environ["SERVICE_HOME"]) / name
