"""The deliver activity on a real store: each channel on its own, each notification once, none lost."""

import asyncio
import json
import socket
import threading
from datetime import timedelta

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.host.context import Context
from activities.notify.channels import LogFile
from activities.notify.deliver import Deliverer
from activities.settings import ready
from activities.settings.home import Home
from activities.settings.load import load
from activities.settings.model import NotifySection, Settings
from activities.store import job_rows, outbox
from activities.store.database import open_store
from tests.activities.store.rows import EVENT, ROOT
from tests.bridge import seeds
from workflows.model.rows import Records

pytestmark = pytest.mark.ruling("F8")
ID = EVENT.event_id


class Told:
    """A service whose one notification goes to the log, and to a command that fails while a file exists."""

    def __init__(self, home: Home) -> None:
        self.broken = home.root / "broken"
        self.heard = home.root / "heard"
        script = f"test ! -e {self.broken} || {{ echo busy >&2; exit 3; }}; cat >>{self.heard}; echo >>{self.heard}"
        settings = Settings(notify=NotifySection(command=["sh", "-c", script]))
        self.context = Context(home, settings, open_store(home), {"PATH": "/usr/bin:/bin"})
        self.log = home.root / "notifications.jsonl"
        with self.context.store.begin() as connection:
            outbox.add(connection, (EVENT,))

    def deliver(self) -> None:
        asyncio.run(ActivityEnvironment().run(Deliverer(self.context).deliver, ID))

    @property
    def logged(self) -> list[str]:
        return [json.loads(line)["notification_id"] for line in self.log.read_text().splitlines()]

    @property
    def missing(self) -> list[tuple[str, int, str]]:
        return [(how.channel, how.attempts, how.error) for _, how in outbox.failing(self.context.store)]


@pytest.fixture
def delivery(home: Home) -> Told:
    return Told(home)


def test_temporal_is_told_that_its_host_is_alive(delivery: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("activities.host.heartbeat.BEAT", timedelta(0))
    beats: list[object] = []
    environment = ActivityEnvironment()
    environment.on_heartbeat = lambda *details: beats.append(details)
    asyncio.run(environment.run(Deliverer(delivery.context).deliver, ID))
    assert beats


@pytest.mark.ruling("M6")
def test_what_asks_people_to_act_names_the_page_where_the_bridge_listens(delivery: Told) -> None:
    job_rows.write(
        delivery.context.store,
        Records(task=seeds.task(), jobs=(seeds.job(),), rounds=(seeds.round_(coordinator_id=EVENT.job_id),)),
    )
    ready.say(delivery.context.home.bridge_ready, load(delivery.context.home).reading.in_use(), "127.0.0.1:8799")
    delivery.deliver()
    page = f"http://127.0.0.1:8799/ui/trees/{ROOT}"
    [line] = delivery.log.read_text().splitlines()
    assert json.loads(line)["page"] == page
    assert delivery.heard.read_text().rstrip().endswith(f"service resume {ROOT} answer\nor on the page {page}")


def test_a_channel_that_is_down_holds_up_no_other_and_only_it_is_tried_again(delivery: Told) -> None:
    delivery.broken.touch()
    for attempt in (1, 2):
        with pytest.raises(ApplicationError, match="command: exit code 3: busy"):
            delivery.deliver()
        assert delivery.logged == [ID]
        assert delivery.missing == [("command", attempt, "exit code 3: busy")]
    delivery.broken.unlink()
    delivery.log.unlink()
    delivery.deliver()
    assert delivery.heard.read_text() == f"{EVENT.message}\n"
    assert not delivery.log.exists(), "what has arrived is not told again"
    assert delivery.missing == []


def test_a_log_that_cannot_be_written_holds_up_no_other(delivery: Told) -> None:
    delivery.log.mkdir()
    with pytest.raises(ApplicationError, match=r"log: .Errno"):
        delivery.deliver()
    assert delivery.heard.read_text() == f"{EVENT.message}\n"
    assert [channel for channel, _, _ in delivery.missing] == ["log"]
    delivery.log.rmdir()
    delivery.deliver()
    assert delivery.logged == [ID]
    assert delivery.heard.read_text() == f"{EVENT.message}\n"


def test_what_has_been_delivered_everywhere_is_never_told_again(delivery: Told) -> None:
    for _ in range(3):
        delivery.deliver()
    assert delivery.logged == [ID]
    assert delivery.heard.read_text() == f"{EVENT.message}\n"


def test_a_kill_between_the_line_and_its_record_does_not_double_the_line(delivery: Told) -> None:
    notification = outbox.get(delivery.context.store, ID)
    assert notification is not None
    LogFile(delivery.log).deliver(notification)
    assert not outbox.is_delivered(delivery.context.store, ID, "log")
    delivery.deliver()
    assert delivery.logged == [ID]
    assert outbox.is_delivered(delivery.context.store, ID, "log")


def test_a_line_cut_off_by_a_kill_is_written_again_whole(delivery: Told) -> None:
    delivery.log.write_text(f'{{"at": 12.5, "notification_id": "{ID}", "root_')
    delivery.deliver()
    assert json.loads(delivery.log.read_text().splitlines()[-1])["notification_id"] == ID


def test_a_message_too_long_for_an_environment_is_told_whole(delivery: Told) -> None:
    long = EVENT.model_copy(update={"event_id": f"{ROOT}-e4", "message": "why? " * 50_000})
    with delivery.context.store.begin() as connection:
        outbox.add(connection, (long,))
    asyncio.run(ActivityEnvironment().run(Deliverer(delivery.context).deliver, long.event_id))
    assert delivery.heard.read_text() == f"{long.message}\n"


def test_a_webhook_whose_answer_is_no_http_is_undelivered(home: Home) -> None:
    listening = socket.create_server(("127.0.0.1", 0))

    def babble() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"what?\r\n\r\n")

    threading.Thread(target=babble, daemon=True).start()
    url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
    context = Context(
        home,
        Settings(notify=NotifySection(log=False, webhook_url=url, webhook_secret_env="HOOK")),
        open_store(home),
        {"HOOK": "s3cret"},
    )
    with context.store.begin() as connection:
        outbox.add(connection, (EVENT,))
    with listening, pytest.raises(ApplicationError, match="webhook: "):
        asyncio.run(ActivityEnvironment().run(Deliverer(context).deliver, ID))
    [(_, how)] = outbox.failing(context.store)
    assert (how.channel, how.attempts) == ("webhook", 1)
    assert how.error


@pytest.mark.ruling("N8")
def test_a_file_is_no_webhook_and_nothing_is_recorded_as_delivered(home: Home) -> None:
    section = NotifySection(log=False, webhook_secret_env="HOOK").model_copy(
        update={"webhook_url": "file:///etc/hostname"}
    )
    context = Context(home, Settings(notify=section), open_store(home), {"HOOK": "s3cret"})
    with context.store.begin() as connection:
        outbox.add(connection, (EVENT,))
    with pytest.raises(ApplicationError, match="webhook: "):
        asyncio.run(ActivityEnvironment().run(Deliverer(context).deliver, ID))
    assert not outbox.is_delivered(context.store, ID, "webhook")


def test_a_notification_that_is_not_there_yet_is_asked_for_again(delivery: Told) -> None:
    with pytest.raises(ApplicationError, match="e99 is not there yet") as caught:
        asyncio.run(ActivityEnvironment().run(Deliverer(delivery.context).deliver, "job-0123456789ab-e99"))
    assert not caught.value.non_retryable
