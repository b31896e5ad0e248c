"""Channels of notifications. Each delivers or raises; delivering twice must be harmless.

No library: a line in a file, a command and a signed POST take a few lines each with the standard library.
"""

import fcntl
import hashlib
import hmac
import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from http.client import HTTPException
from pathlib import Path
from typing import Protocol
from urllib.error import HTTPError
from urllib.parse import urlsplit

from activities.runs.regular_files import open_to_append, open_to_read
from activities.store.outbox import Notification
from workflows.text.invisible import in_json, one_line, visible

SECONDS = 20
TAIL = 1024 * 1024
"""Part of the log that is searched for a notification: the last line may be as long as a whole message."""
COMMAND_LIMIT = 16 * 1024


class DeliveryError(Exception):
    """The notification did not arrive; the message says why."""


class Channel(Protocol):
    """A way to reach people."""

    name: str

    def deliver(self, notification: Notification) -> None:
        """Deliver, or raise DeliveryError."""
        ...


class LogFile:
    """A line of JSON per notification, in the service home."""

    name = "log"

    def __init__(self, path: Path) -> None:
        self._path = path

    def deliver(self, notification: Notification) -> None:
        """Append the notification, unless the log has it already: a crash may have come after the line was written and
        before its delivery was recorded.
        """
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open_to_append(self._path) as file, open_to_read(self._path) as there:
                fcntl.flock(file, fcntl.LOCK_EX)
                size = there.seek(0, os.SEEK_END)
                there.seek(max(0, size - TAIL))
                # Only whole lines count: one that a crash cut off is ended, and written again.
                whole, _, cut_off = there.read().rpartition(b"\n")
                if f'"{notification.notification_id}"'.encode() not in whole:
                    file.write((b"\n" if cut_off else b"") + _body(notification) + b"\n")
        except OSError as error:
            raise DeliveryError(str(error)) from None


class CommandChannel:
    """The operator's command: the whole text on standard input, short values in `SERVICE_NOTIFICATION_*`."""

    name = "command"

    def __init__(self, argv: tuple[str, ...], environ: Mapping[str, str] = os.environ) -> None:
        self._argv = argv
        self._environ = environ

    def deliver(self, notification: Notification) -> None:
        """Run the command; an exit code other than 0 is a failure."""
        names = {f"SERVICE_NOTIFICATION_{key.upper()}": value for key, value in _short(notification)}
        try:
            done = subprocess.run(
                self._argv,
                input=visible(notification.text or notification.message).encode(),
                env={**self._environ, **names, "SERVICE_NOTIFICATION_ID": notification.notification_id},
                capture_output=True,
                timeout=SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise DeliveryError(str(error)) from None
        if done.returncode != 0:
            lines = done.stderr.decode(errors="replace").strip().splitlines()
            raise DeliveryError(f"exit code {done.returncode}{f': {lines[-1][:300]}' if lines else ''}")


class Webhook:
    """A signed POST: `X-Service-Signature: sha256=<HMAC of "TIMESTAMP.BODY">`, with the time in seconds as in
    `X-Service-Timestamp`; `X-Service-Event-Id` shows repeats.

    Posts only to the address in the settings, and only by HTTP: opening a file would not be a delivery.
    """

    name = "webhook"

    def __init__(self, url: str, secret: str, clock: Callable[[], float] = time.time) -> None:
        self._url, self._secret, self._clock = url, secret.encode(), clock

    def deliver(self, notification: Notification) -> None:
        """Post the notification; a status other than 2xx is a failure, and so is a redirection."""
        if urlsplit(self._url).scheme not in ("http", "https"):
            raise DeliveryError(f"{self._url} is no address of the web: set [notify].webhook_url to http(s)://...")
        body, at = _body(notification), str(int(self._clock()))
        headers = {
            "Content-Type": "application/json",
            "X-Service-Event-Id": notification.notification_id,
            "X-Service-Timestamp": at,
            "X-Service-Signature": "sha256="
            + hmac.new(self._secret, f"{at}.".encode() + body, hashlib.sha256).hexdigest(),
        }
        request = urllib.request.Request(self._url, body, headers, method="POST")  # noqa: S310
        try:
            with _OPENER.open(request, timeout=SECONDS):
                return
        except HTTPError as answer:
            elsewhere = ", and it is not followed to another address" if 300 <= answer.code < 400 else ""
            raise DeliveryError(f"the webhook answered {answer.code} {answer.reason}{elsewhere}") from None
        except (OSError, ValueError, HTTPException) as error:  # a URLError is an OSError
            raise DeliveryError(str(error).strip() or type(error).__name__) from None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A handler that refuses redirections: a notification goes only to the address in the settings."""

    def redirect_request(self, *_: object) -> None:
        return None


_OPENER = urllib.request.OpenerDirector()
for _handler in (
    urllib.request.ProxyHandler,
    urllib.request.HTTPHandler,
    urllib.request.HTTPSHandler,
    urllib.request.HTTPDefaultErrorHandler,
    urllib.request.HTTPErrorProcessor,
    urllib.request.UnknownHandler,
    _NoRedirect,
):
    _OPENER.add_handler(_handler())


def _short(notification: Notification) -> Iterator[tuple[str, str]]:
    """Yield the notification's short values for environment variables. Questions and reasons are too long for them."""
    for key, value in asdict(notification).items():
        if key not in {"message", "text"} and isinstance(value, str | int | float):
            yield key, one_line(str(value))
    yield "command", one_line(notification.commands[0][:COMMAND_LIMIT]) if notification.commands else ""


def _body(notification: Notification) -> bytes:
    return in_json(json.dumps(asdict(notification), ensure_ascii=False, sort_keys=True)).encode()
