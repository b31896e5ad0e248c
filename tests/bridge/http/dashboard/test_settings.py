"""The settings in force on a page, with their origin, and the processes with outdated ones (rulings K4, M4)."""

import pytest

from activities.settings import ready
from bridge.operations import settings
from bridge.operations.service import Service
from bridge.operations.settings_in_words import sentence
from tests.bridge.http.dashboard.conftest import NO_TEMPORAL
from tests.bridge.http.dashboard.surfer import Surfer

pytestmark = pytest.mark.ruling("M4", "K4")


async def test_each_setting_says_where_it_comes_from(
    service: Service, ann: Surfer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICE_BRIDGE_PORT", "8799")
    words = (await ann.open("/ui/settings")).words
    changed, _, others = words.partition(" Tasks and their limits ")
    assert "It listens on port 1 . Temporal, from config.toml" in changed
    assert "They listen on port 8799 . The dashboard and the HTTP interface, from environment" in changed
    assert "change it where the service is started" in changed
    assert "levels deep" not in changed, "the changed ones stand first"
    assert "A task may be handed on 8 levels deep." in others
    assert "[orchestrate] max_delegation_depth = 8" in others
    assert "needs a restart" not in words


def test_every_setting_has_a_sentence(service: Service) -> None:
    service.home.config.write_text('[prices."a.b"]\ninput = 1\noutput = 0\n')
    for row in settings.in_force(service):
        words = sentence(row.section, row.key, row.value)
        assert "".join(words).endswith((".", ").")), row


def test_a_sentence_has_its_unit_and_agrees_with_its_number() -> None:
    text = {value: "".join(sentence("orchestrate", "escalation_ttl", value)) for value in ('"1d"', '"1d12h"', '"90s"')}
    assert text == {
        '"1d"': "A question waits 1 day for your answer.",
        '"1d12h"': "A question waits 1 day 12 h for your answer.",
        '"90s"': "A question waits 90 s for your answer.",
    }
    batches = [sentence("orchestrate", "max_delegation_non_progress_streak", number) for number in "12"]
    assert [words.after.partition(" in")[0] for words in batches] == [" batch", " batches"]
    assert sentence("worker", "max_parallel_jobs", "1").after == " job at once."
    assert sentence("git", "build_products", "true") == ("What builds leave is committed.", "", "")
    assert sentence("git", "build_products", "false").before == "What builds leave is not committed."


async def test_the_file_is_read_as_it_is_now_and_who_has_read_it_before_is_named(service: Service, ann: Surfer) -> None:
    ready.say(service.home.bridge_ready, service.reading.in_use())
    assert "needs a restart" not in (await ann.open("/ui/settings")).words
    service.home.config.write_text(f'{NO_TEMPORAL}[notify]\nwebhook_url = "http://ann:s3cretpass@127.0.0.1/x"\n')
    shown = await ann.open("/ui/settings")
    assert "▲ bridge: needs a restart for 1 setting" in shown.words
    assert shown.words.count("▲ bridge needs a restart") == 2, "at the changed setting, and among its section's"
    assert "Each notification is posted to http://" in shown.words
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
    assert "✕ bridge: goes on with older settings" in shown.words
    assert "<b>x" not in shown.html
