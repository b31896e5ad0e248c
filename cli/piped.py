"""Text arguments, or standard input if `-` is typed in their place."""

import sys

from workflows.model.errors import UsageError


def text_of(typed: str) -> str:
    """Return the whole text."""
    if typed != "-":
        return typed
    try:
        return sys.stdin.read()
    except UnicodeDecodeError:
        encoding = sys.stdin.encoding.lower()
        if encoding == "utf-8":
            raise UsageError("standard input is not UTF-8 text") from None
        raise UsageError(f"standard input is read as {encoding}", "export PYTHONIOENCODING=utf-8") from None
