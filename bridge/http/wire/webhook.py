"""Where GitHub's deliveries arrive, and how a call that is one is known."""

from bridge.http.wire.call import Scope, call_of

PATH = "/v1/github/webhook"
LARGEST = 5 * 1024 * 1024
"""The bytes of a delivery; larger ones are never read."""

CALLER = "webhook"
"""Who calls, when it is a signed delivery."""


def is_delivery(scope: Scope) -> bool:
    """Somebody sends what should be a delivery."""
    return bool(scope["method"] == "POST" and scope["path"] == PATH)


def is_signed(scope: Scope) -> bool:
    """Its signature was found to be right: it needs no token, was counted already, and may call us by any name."""
    return call_of(scope).caller == CALLER
