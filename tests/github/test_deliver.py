"""Deliveries equal GitHub's."""

import hashlib
import hmac
import json
from collections.abc import Iterator

import jsonschema_rs
import pytest

from tests.github.deliver import Delivery, comment_delivery, deliver, disordered, examples, pull_delivery
from tests.github.hub import Hub
from tests.github.tools import need
from tests.github.wire import Reply, Request, Server


@pytest.fixture
def taken() -> Iterator[tuple[str, list[Request]]]:
    """Yield an address, and the requests that arrived there."""
    came: list[Request] = []

    def answer(request: Request) -> Reply:
        came.append(request)
        return Reply(202)

    server = Server(answer)
    yield f"{server.address}/webhook", came
    server.down()


def test_they_are_signed_over_the_very_bytes(hub: Hub, taken: tuple[str, list[Request]]) -> None:
    address, came = taken
    comment = hub.comment("ann", hub.issue(), "päge")
    assert deliver(address, comment_delivery(hub, comment), "s3cret").status_code == 202
    deliver(address, comment_delivery(hub, comment), "")
    signed, unsigned = came
    wanted = "sha256=" + hmac.new(b"s3cret", signed.body, hashlib.sha256).hexdigest()
    assert signed.headers["x-hub-signature-256"] == wanted
    assert signed.headers["x-github-event"] == "issue_comment"
    assert signed.json()["comment"]["id"] == comment
    assert "x-hub-signature-256" not in unsigned.headers


def test_each_comes_at_least_once_and_again_under_its_own_id() -> None:
    made = [Delivery("ping", {"n": number}) for number in range(4)]
    orders = [disordered(made, seed) for seed in range(20)]
    assert all({each.id for each in order} == {each.id for each in made} and len(order) == 6 for order in orders)
    assert len({json.dumps([each.payload for each in order]) for order in orders}) > 10


@pytest.mark.long
def test_ours_are_as_github_describes_its_own(hub: Hub) -> None:
    """Some of GitHub's own examples are older than its schema, so they are only parsed."""
    schema = json.loads((need("schemas") / "schema.json").read_text())
    number = hub.pull()
    comment = hub.comment("ann", number, "hello")
    made = [comment_delivery(hub, comment, action) for action in ("created", "edited", "deleted")]
    for delivery in (*made, pull_delivery(hub, number)):
        action = delivery.payload["action"]
        whole = {"$ref": f"#/definitions/{delivery.event}${action}", "definitions": schema["definitions"]}
        errors = list(jsonschema_rs.Draft7Validator(whole).iter_errors(delivery.payload))
        assert [(list(error.instance_path), error.message[:200]) for error in errors] == [], (delivery.event, action)
    assert {each.payload["action"] for each in examples("issue_comment")} == {"created", "edited", "deleted"}
