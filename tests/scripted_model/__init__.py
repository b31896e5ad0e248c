"""A model that plays a script, to drive the agents' real programs without an account, a key or a network.

It listens on 127.0.0.1 only and implements the protocols of the three programs, streamed and whole:

    POST …/v1/responses          codex
    POST …/v1/messages           claude (and …/messages/count_tokens)
    POST …/v1/chat/completions   kimi
    GET  …/v1/models             for all of them

Its answers follow a scenario: a list of steps, or a function that computes them from the prompt. The request itself
determines the step: the number of tools that the assistant has called since the user's last message. So the server
keeps no conversations, a program that asks again gets an equal step, and many jobs can use it at the same time. The
last step repeats.

The scenario is the one that the newest user message names, `[[fake:NAME]]`; otherwise the one in the path,
`http://127.0.0.1:PORT/s/NAME/v1`; otherwise `answer`. `scenarios.py` describes steps, and defines some scenarios.

    with ScriptedModel({"hello": [{"text": "Hello."}]}) as model:
        environment["ANTHROPIC_BASE_URL"] = model.url()
        ...
        model.requests()  # the requests so far

By hand: `python -m tests.scripted_model`, and `--list` for the scenarios.
"""

from tests.scripted_model.server import ScriptedModel

__all__ = ["ScriptedModel"]
