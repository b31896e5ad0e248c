"""The errors of HTTP, and the conversion of every exception to a ServiceError (ruling J1).

An error's class has its `status`, its `code`, its header, and as its docstring the description in the OpenAPI document.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import DBAPIError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from activities.redaction.redact import redact_begin, redact_text
from bridge.http.wire.call import Scope, call_of
from workflows.contract.faults import SHOWN, did_you_mean, first
from workflows.contract.storable import short_line
from workflows.model.errors import NotFoundError, RefusedError, ServiceError, UsageError
from workflows.text.demands import demand

log = logging.getLogger(__name__)

LONGEST = 3000
"""Longest message, in characters, that quotes the request."""


class HttpError(ServiceError):
    """A refusal that exists only in HTTP."""

    header: ClassVar[str | None] = None

    def __init__(self, message: str, header: str = "") -> None:
        super().__init__(message)
        self.headers = {self.header: header} if self.header else {}


class InvalidRequestError(HttpError):
    """A value of the request is invalid."""

    code = "invalid_request"
    status = 400


class InvalidJsonError(UsageError):
    """The body is not one plain JSON value."""

    code = "invalid_json"


class InvalidHttpError(HttpError):
    """The request is not valid HTTP."""

    code = "invalid_http"
    status = 400


class ClientGoneError(HttpError):
    """The connection ended before the whole body arrived."""

    code = "client_gone"
    status = 400


class UnauthorizedError(HttpError):
    """The token is missing or wrong."""

    code = "unauthorized"
    status = 401
    header = "WWW-Authenticate"


class ForbiddenHostError(HttpError):
    """The Host header names another host."""

    code = "forbidden_host"
    status = 403


class ForbiddenOriginError(HttpError):
    """The Origin header names another origin."""

    code = "forbidden_origin"
    status = 403


class ForbiddenScopeError(RefusedError):
    """The token may not do that; the message names the required scope."""

    code = "forbidden_scope"
    status = 403


class MethodNotAllowedError(HttpError):
    """The method is not allowed here."""

    code = "method_not_allowed"
    status = 405
    header = "Allow"


class TooLargeError(HttpError):
    """The request body is too large."""

    code = "too_large"
    status = 413


class NotJsonError(HttpError):
    """The body is not JSON."""

    code = "not_json"
    status = 415


class RateLimitedError(HttpError):
    """Too many requests; Retry-After says when to try again."""

    code = "rate_limited"
    status = 429
    header = "Retry-After"


class TooManyStreamsError(HttpError):
    """This caller has too many open event streams and waiting requests; close one, then try again."""

    code = "too_many_streams"
    status = 429


class InternalError(HttpError):
    """An internal error of the service."""

    code = "internal"
    status = 500


class BusyError(HttpError):
    """Too many connections are active; try again."""

    code = "busy"
    status = 503

    def __init__(self) -> None:
        super().__init__("too many connections are open and at work; close some, or try again")


class StoreUnreachableError(HttpError):
    """The store cannot be reached; try again."""

    code = "store_unreachable"
    status = 503


class NotReadyError(HttpError):
    """The store or Temporal cannot be reached."""

    code = "not_ready"
    status = 503


def as_ours(error: Exception, scope: Scope) -> ServiceError:
    """Convert an exception to a ServiceError, without secrets that its text quotes from the call (ruling N7).

    An unexpected exception is our fault: its details go to the log only.
    """
    ours = _as_ours(error, scope)
    ours.message, ours.hint = redact_begin(ours.message, LONGEST), redact_text(ours.hint)
    return ours


def _as_ours(error: Exception, scope: Scope) -> ServiceError:
    match error:
        case ServiceError():
            return error
        case RequestValidationError():
            return InvalidRequestError(sentences(error.errors()))
        case HTTPException(status_code=404):
            return NotFoundError(f"there is nothing at {scope['path'][:200]}; /openapi.json lists what there is")
        case HTTPException(status_code=405):
            message = f"{scope['method']} is not allowed here; the Allow header lists what is"
            return MethodNotAllowedError(message, (error.headers or {}).get("Allow", ""))
        case HTTPException() if error.status_code < 500:
            return InvalidRequestError(str(error.detail))
        case ClientDisconnect():
            return ClientGoneError("the connection ended before the body did")
        case DBAPIError():
            log.error("the store: %s", error)
            return StoreUnreachableError("the store cannot be reached; try again")
        case _:
            log.error("%s %s failed", scope["method"], call_of(scope).request_id, exc_info=error)
            return InternalError("internal error; the log of the bridge says more")


NAME = 100
"""Longest name, in characters, that is quoted from a request."""


def sentences(faults: Sequence[Mapping[str, Any]]) -> str:
    """Return the faults of a request in one line; of many, only the first."""
    return "; ".join(first([sentence(fault) for fault in faults[:SHOWN]], len(faults)))


def sentence(fault: Mapping[str, Any]) -> str:
    """Describe one fault of a request."""
    where, *path = (str(part) for part in fault["loc"])
    field = short_line(".".join(path), NAME) or f"the {where}"
    match fault["type"]:
        case "missing" if not path:
            return "a JSON object is required as the body"
        case "missing":
            return f"{field} is required"
        case "extra_forbidden":
            return f"{field} is not a field of this request"
        case "int_parsing_size":
            return f"{field} must be a whole number of fewer digits"
        case "value_error":
            return f"{field} {fault['ctx']['error']}"
        case _:
            return f"{field} {demand(str(fault['msg']))}"


def unknown(name: str, known: Sequence[str]) -> str:
    """Describe an unknown query parameter, with the nearest known name."""
    name = short_line(name, NAME)
    hint = did_you_mean(name, known) or f"; known here: {', '.join(known) or 'none'}"
    return f"{name!r} is not a query parameter{hint}"
