"""The demands of a validation in the service's words: pydantic's begin with the type of the value."""

import re

_SUBJECT = re.compile(r"^\w+ should ")


def demand(message: str, verb: str = "must") -> str:
    """Return a validation's message without its subject: `must have at least 1 character`."""
    return _SUBJECT.sub(f"{verb} ", message.removeprefix("Value error, "))
