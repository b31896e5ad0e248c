"""The commands that always run in a process of their own: those that need the terminal, outlive the daemon, or start
programs in the caller's whole environment.
"""

import os
from collections.abc import Sequence

from cli.invocation.aliases import expand

_NOUNS = {"dashboard", "demo", "doctor", "init", "runtime"}
_COMMANDS = {("daemon", "start"), ("daemon", "stop"), ("daemon", "run"), ("bridge", "serve")}
_BROWSER = "--web"
"""The option that opens a browser, which must be a child of the person's session, not of the daemon."""
_ON_A_TERMINAL = {"-", "--wait", "--watch", "--follow", "-f", "diff", "watch", "help"}
"""Words of commands that read from the terminal, page, or run long: there the shell must handle Ctrl-Z, `bg` and
`fg`.
"""
_VERBS = {"answer", "retry", "continue", "abort", "extend"}
"""The verbs of `service resume`, which asks on the terminal if none of them is typed."""
_DESCRIPTORS = ("/dev/fd/", "/proc/")
"""Paths that differ between processes, such as `<(command)` of a shell."""


def is_needed(words: Sequence[str]) -> bool:
    """Return whether this command must not be handed over; `words` follow `service`."""
    words = expand(words)
    named = [word for word in words if not word.startswith("-")]
    if not named:
        return False
    if named[0] in _NOUNS or tuple(named[:2]) in _COMMANDS or _BROWSER in words:
        return True
    if any(part in word for word in words for part in _DESCRIPTORS):
        return True
    asks = (named[0] == "resume" and not _VERBS & set(named)) or tuple(named[:2]) == ("repo", "sweep")
    return (asks or bool(_ON_A_TERMINAL & set(words))) and (os.isatty(0) or os.isatty(1))
