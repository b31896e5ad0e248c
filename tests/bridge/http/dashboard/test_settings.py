"""The settings in force on a page, with their origin, and the processes with outdated ones (rulings K4, M4)."""

import pytest

from activities.settings import ready
from bridge.operations.service import Service
from tests.bridge.http.dashboard.conftest import NO_TEMPORAL
from tests.bridge.http.dashboard.surfer import Surfer

pytestmark = pytest.mark.ruling("M4", "K4")


async def test_each_setting_says_where_it_comes_from(
    service: Service, ann: Surfer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICE_BRIDGE_PORT", "8799")
    words = (await ann.open("/ui/settings")).words
    assert "port 1 config.toml" in words
    assert "port 8799 environment SERVICE_BRIDGE_PORT" in words
    assert "max_delegation_depth 8 default" in words


async def test_the_file_is_read_as_it_is_now_and_who_has_read_it_before_is_named(service: Service, ann: Surfer) -> None:
    ready.say(service.home.bridge_ready, service.reading.in_use())
    assert "bridge ● works with these" in (await ann.open("/ui/settings")).words
    service.home.config.write_text(f'{NO_TEMPORAL}[notify]\nwebhook_url = "http://ann:s3cretpass@127.0.0.1/x"\n')
    shown = await ann.open("/ui/settings")
    assert "bridge ? works with older ones" in shown.words
    assert 'notify.webhook_url is "" there' in shown.words
    assert "end that process, then: service bridge serve" in shown.words
    assert "s3cretpass" not in shown.html


async def test_a_password_of_the_store_is_not_shown(
    service: Service, ann: Surfer, monkeypatch: pytest.MonkeyPatch
) -> None:
    _ = service.store  # the store it has opened
    monkeypatch.setenv("SERVICE_STORE_URL", "postgresql+psycopg://service:s3cretpass@db.internal:5432/postgres")
    shown = await ann.open("/ui/settings")
    assert "db.internal:5432" in shown.html
    assert "s3cretpass" not in shown.html


async def test_a_file_that_cannot_be_used_is_explained(service: Service, ann: Surfer) -> None:
    ready.say(service.home.bridge_ready, service.reading.in_use())
    service.home.config.write_text('[bridge]\nprot = 1\n[notify]\nlog = "<b>x</b>"\n')
    shown = await ann.open("/ui/settings")
    assert shown.status == 200
    assert 'did you mean "port"?' in shown.words
    assert "service config check" in shown.words
    assert "bridge ✕ goes on with older ones" in shown.words
    assert "<b>x" not in shown.html
