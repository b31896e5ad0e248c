"""What is logged holds no secret, whatever a message or a traceback was made of."""

import logging

from activities.redaction.redacted import redacted


class Redacting(logging.Formatter):
    """The lines of another formatter, redacted."""

    def __init__(self, inner: logging.Formatter | None) -> None:
        super().__init__()
        self._inner = inner or logging.Formatter()

    def format(self, record: logging.LogRecord) -> str:
        return redacted(self._inner.format(record))


def install() -> None:
    """From now on the root logger's handlers redact."""
    for handler in logging.getLogger().handlers:
        if not isinstance(handler.formatter, Redacting):
            handler.setFormatter(Redacting(handler.formatter))
