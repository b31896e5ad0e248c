"""The endpoint of GitHub's deliveries, and recognition of such calls."""

from bridge.http.wire.call import Scope, call_of

PATH = "/v1/github/webhook"
LARGEST = 5 * 1024 * 1024
"""Size limit of a delivery in bytes; larger ones are never read."""

CALLER = "webhook"
"""The caller of signed deliveries."""


def is_delivery(scope: Scope) -> bool:
    """Return whether a request is for the webhook's endpoint; its signature is checked later."""
    return bool(scope["method"] == "POST" and scope["path"] == PATH)


def is_signed(scope: Scope) -> bool:
    """Return whether the signature was valid: such a call needs no token, is rate-limited already, and may use any
    host name.
    """
    return call_of(scope).caller == CALLER
