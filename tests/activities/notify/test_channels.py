"""Each channel against a real receiver: a file, a process, an HTTP server."""

import hashlib
import hmac
import json
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from pydantic import ValidationError

from activities.notify.channels import CommandChannel, DeliveryError, LogFile, Webhook
from activities.settings.model import NotifySection
from activities.store.outbox import Notification
from tests.evil import EVIL, raw
from workflows.model.errors import UsageError

TOLD = Notification("job-0123456789ab-e3", "job-0123456789ab", "job-0123456789ab.2", "round_opened", "Which? - é", 12.5)


@pytest.mark.ruling("F8")
def test_the_log_has_one_line_however_often_it_is_told(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "deep" / "log.jsonl")
    for _ in range(3):
        log.deliver(TOLD)
    lines = (tmp_path / "deep" / "log.jsonl").read_text().splitlines()
    assert [json.loads(line)["message"] for line in lines] == ["Which? - é"]


def test_a_command_gets_the_message_and_what_it_is_about(tmp_path: Path) -> None:
    out = tmp_path / "out"
    script = f"import os, sys; open({str(out)!r}, 'w').write(os.environ['SERVICE_NOTIFICATION_ID'] + sys.stdin.read())"
    CommandChannel((sys.executable, "-c", script)).deliver(TOLD)
    assert out.read_text() == "job-0123456789ab-e3Which? - é"


@pytest.mark.parametrize(
    ("argv", "why"),
    [(("/no/such",), "No such file"), ((sys.executable, "-c", "import sys; sys.exit('busy')"), "exit code 1: busy")],
)
def test_a_command_that_fails_says_why(argv: tuple[str, ...], why: str) -> None:
    with pytest.raises(DeliveryError, match=why):
        CommandChannel(argv).deliver(TOLD)


class Receiver(BaseHTTPRequestHandler):
    seen: list[tuple[dict[str, str], bytes]] = []
    status = 200

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append((dict(self.headers), body))
        self.send_response(self.status)
        if self.status in (301, 307):
            self.send_header("Location", "/elsewhere")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def receiver() -> Iterator[str]:
    Receiver.seen, Receiver.status = [], 200
    server = HTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/hook"
    server.shutdown()
    server.server_close()


def test_a_webhook_is_signed_and_carries_the_events_id(receiver: str) -> None:
    Webhook(receiver, "s3cret", clock=lambda: 1700000000.9).deliver(TOLD)
    headers, body = Receiver.seen[0]
    assert headers["X-Service-Event-Id"] == TOLD.notification_id
    assert headers["X-Service-Timestamp"] == "1700000000"
    expected = hmac.new(b"s3cret", b"1700000000." + body, hashlib.sha256).hexdigest()
    assert headers["X-Service-Signature"] == f"sha256={expected}"
    assert json.loads(body)["job_id"] == "job-0123456789ab.2"


@pytest.mark.ruling("N8")
@pytest.mark.parametrize("status", [301, 307])
def test_a_webhook_is_not_followed_elsewhere(receiver: str, status: int) -> None:
    Receiver.status = status
    with pytest.raises(DeliveryError, match=f"answered {status} .*not followed"):
        Webhook(receiver, "s3cret").deliver(TOLD)
    assert len(Receiver.seen) == 1


@pytest.mark.ruling("N8")
@pytest.mark.parametrize(("named", "hint"), [("", "webhook_secret_env = "), ("HOOK", "export HOOK=")])
def test_a_webhook_without_its_secret_is_refused(named: str, hint: str) -> None:
    notify = NotifySection(webhook_url="https://127.0.0.1/hook", webhook_secret_env=named)
    with pytest.raises(UsageError, match="no secret is there") as refused:
        notify.secret({"HOOK": ""})
    assert hint in refused.value.hint
    assert NotifySection(webhook_url="https://127.0.0.1/", webhook_secret_env="HOOK").secret({"HOOK": "x"}) == "x"


def test_a_webhook_that_refuses_or_is_not_there_says_why(receiver: str) -> None:
    Receiver.status = 503
    with pytest.raises(DeliveryError, match="503"):
        Webhook(receiver, "").deliver(TOLD)
    with pytest.raises(DeliveryError, match="refused"):
        Webhook("http://127.0.0.1:1/", "").deliver(TOLD)


@pytest.mark.ruling("N8")
@pytest.mark.parametrize("url", ["file:///etc/hostname", "FILE:/etc/hostname", "data:,told", "ftp://127.0.0.1:1/x", ""])
def test_what_is_not_the_web_is_never_delivered_to(url: str) -> None:
    with pytest.raises(DeliveryError, match="http"):
        Webhook(url, "s3cret").deliver(TOLD)


@pytest.mark.ruling("N8")
@pytest.mark.parametrize(
    "url", ["file:///etc/hostname", "data:,told", "http:///etc/hostname", "https:told", "http://a b/"]
)
def test_a_webhook_that_is_not_an_address_of_the_web_is_refused_as_a_setting(url: str) -> None:
    with pytest.raises(ValidationError, match="webhook_url"):
        NotifySection(webhook_url=url)


@pytest.mark.ruling("N8")
def test_a_log_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DeliveryError, match="is a link"):
        LogFile(tmp_path / "log.jsonl").deliver(TOLD)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.ruling("N6")
def test_nothing_unseen_goes_out(tmp_path: Path) -> None:
    """A command may show variables, standard input and the log on a terminal, or in a desktop's message."""
    out = tmp_path / "out"
    evil = replace(TOLD, message=EVIL, text=EVIL, title=EVIL, commands=(EVIL,), questions=({"prompt": EVIL},))
    script = (
        "import json, os, sys; told = [v for k, v in os.environ.items() if k.startswith('SERVICE_NOTIFICATION')];"
        f"open({str(out)!r}, 'w').write(json.dumps([told, sys.stdin.read()]))"
    )
    CommandChannel((sys.executable, "-c", script)).deliver(evil)
    values, text = json.loads(out.read_text())
    assert not [each for each in values if raw(each) or "\n" in each]
    assert "FORGED" in "".join(values)
    assert not raw(text)
    LogFile(tmp_path / "log.jsonl").deliver(evil)
    [line] = (tmp_path / "log.jsonl").read_text().splitlines()
    assert not raw(line)
    assert json.loads(line)["title"] == EVIL
