"""Messages of failed validations in the service's words, without pydantic's beginning, which names the type of the
value.
"""

import re

_SUBJECT = re.compile(r"^\w+ should ")


def demand(message: str, verb: str = "must") -> str:
    """Return a validation's message as a demand without its subject: `must have at least 1 character`."""
    return _SUBJECT.sub(f"{verb} ", message.removeprefix("Value error, "))
