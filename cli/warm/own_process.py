"""Which commands are always run by a process of their own: those that need the terminal, outlive the daemon, or look
for programs as who types them would find them.
"""

import os
from collections.abc import Sequence

_NOUNS = {"dashboard", "demo", "doctor", "init", "runtime"}
_COMMANDS = {("daemon", "start"), ("daemon", "stop"), ("daemon", "run"), ("bridge", "serve")}
_BROWSER = "--web"
"""A browser that is opened belongs to the person, not to the daemon."""
_ON_A_TERMINAL = {"-", "--wait", "--watch", "--follow", "-f", "diff", "watch", "help"}
"""What may read from the terminal, or pages, or is there for long: Ctrl-Z, `bg` and `fg` are the shell's to arrange."""
_VERBS = {"answer", "retry", "continue", "abort", "extend"}
"""`service resume` asks on the terminal when it is given none of them."""
_DESCRIPTORS = ("/dev/fd/", "/proc/")
"""Files that are others in another process, as `<(command)` of a shell is."""


def needed(words: Sequence[str]) -> bool:
    """Whether this command must not be handed over; `words` are what follows `service`."""
    named = [word for word in words if not word.startswith("-")]
    if not named:
        return False
    if named[0] in _NOUNS or tuple(named[:2]) in _COMMANDS or _BROWSER in words:
        return True
    if any(part in word for word in words for part in _DESCRIPTORS):
        return True
    asks = named[0] == "resume" and not _VERBS & set(named)
    return (asks or bool(_ON_A_TERMINAL & set(words))) and (os.isatty(0) or os.isatty(1))
