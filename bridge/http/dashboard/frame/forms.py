"""Parsing of forms: bounded in size, and in the one encoding of plain forms (ruling M6)."""

from urllib.parse import parse_qsl

from starlette.requests import Request

from bridge.http.wire.call import call_of
from bridge.http.wire.errors import TooLargeError
from workflows.model.errors import UsageError

MOST_BYTES = 512 * 1024
"""Size limit of a form: several times the longest answer a tree accepts."""
MOST_FIELDS = 3000


async def fields_of(request: Request) -> dict[str, tuple[str, ...]]:
    """Return every field with all its values, in the order they were sent."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
        raise UsageError("a form must be sent as application/x-www-form-urlencoded")
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > MOST_BYTES:
            raise TooLargeError(f"a form may have {MOST_BYTES} bytes")
    call_of(request.scope).bytes_in = len(body)
    fields: dict[str, tuple[str, ...]] = {}
    try:
        for name, value in parse_qsl(
            body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS
        ):
            fields[name] = (*fields.get(name, ()), value)
    except ValueError:
        raise UsageError("the form cannot be read") from None
    return fields
