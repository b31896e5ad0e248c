"""The prompt of an agent stage: its own words, and the payload as data (ruling K1)."""

from collections.abc import Mapping

from workflows.text.fences import Fences, inline, written

_INTRODUCTION = """\
# Payload

This run was started with the values below, which came from outside."""


def stage_prompt(prompt: str, payload: Mapping[str, str]) -> str:
    """Return the prompt of the stage's agent."""
    if not payload:
        return prompt
    seed = "\0".join([prompt, *payload, *payload.values()])
    return written(seed, lambda fences: _whole(prompt, payload, fences))


def _whole(prompt: str, payload: Mapping[str, str], fences: Fences) -> str:
    values = (f"{inline(key)}:\n\n{fences.block(value, 'who started the run')}" for key, value in payload.items())
    return "\n\n".join([prompt.strip(), f"{_INTRODUCTION} {fences.meaning()}", *values])
