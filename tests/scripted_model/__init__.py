"""A model that plays a script, for driving the agents' real programs without an account, a key or a network.

It listens on 127.0.0.1 only and speaks what the three programs speak, streamed and whole:

    POST …/v1/responses          codex
    POST …/v1/messages           claude (and …/messages/count_tokens)
    POST …/v1/chat/completions   kimi
    GET  …/v1/models             for all of them

What it answers is a scenario: a list of steps. Which step comes next is read from the request itself: as many as the
assistant has called tools since the user last said something. So it keeps no conversations, a program that asks again
is given the same step again, and many jobs use it at the same time. The last step repeats.

The scenario is the one that the newest user message names, `[[fake:NAME]]`; otherwise the one in the path,
`http://127.0.0.1:PORT/s/NAME/v1`; otherwise `answer`. `scenarios.py` says what a step may hold, and has some to use.

    with ScriptedModel({"hello": [{"text": "Hello."}]}) as model:
        environment["ANTHROPIC_BASE_URL"] = model.url()
        ...
        model.requests()  # what was asked

By hand: `python -m tests.scripted_model`, and `--list` for the scenarios.
"""

from tests.scripted_model.server import ScriptedModel

__all__ = ["ScriptedModel"]
