"""The Hub does what the tests of the product believe of GitHub."""

import time

import httpx
import pytest

from tests.github.hub import Hub

COMMENTS = "/repos/acme/tool/issues/1/comments"


@pytest.fixture
def ann(hub: Hub) -> httpx.Client:
    return client(hub, hub.tokens["ann"])


def client(hub: Hub, token: str) -> httpx.Client:
    return httpx.Client(base_url=hub.address, headers={"Authorization": f"Bearer {token}"}, trust_env=False)


def test_it_starts_at_once() -> None:
    began = time.process_time()
    with Hub() as hub:
        hub.repo("acme/tool")
        assert client(hub, hub.tokens["acme"]).get("/user").json()["login"] == "acme"
    assert time.process_time() - began < 0.3


def test_who_has_seen_it_is_told_so_for_free(hub: Hub, ann: httpx.Client) -> None:
    hub.issue()
    first = ann.get(COMMENTS)
    again = ann.get(COMMENTS, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert first.headers["x-ratelimit-remaining"] == again.headers["x-ratelimit-remaining"] == "4999"
    hub.comment("bob", 1, "new")
    assert ann.get(COMMENTS, headers={"If-None-Match": first.headers["etag"]}).status_code == 200
    assert [(seen.status, seen.free) for seen in hub.requests] == [(200, False), (304, True), (200, False)]


def test_pages_lead_from_one_to_the_next(hub: Hub, ann: httpx.Client) -> None:
    hub.issue()
    for number in range(5):
        hub.comment("bob", 1, str(number))
    found, where = [], f"{COMMENTS}?per_page=2"
    while where:
        page = ann.get(where)
        found += [each["body"] for each in page.json()]
        where = page.links.get("next", {}).get("url", "")
    assert found == list("01234")


def test_comments_of_the_repository_come_newest_change_first(hub: Hub, ann: httpx.Client) -> None:
    hub.issue()
    hub.issue()
    old, new = hub.comment("bob", 1, "old"), hub.comment("bob", 2, "new")
    hub.edit_comment(old, "changed", as_="bob")
    listed = ann.get("/repos/acme/tool/issues/comments?sort=updated&direction=desc").json()
    assert [each["id"] for each in listed] == [old, new]
    since = listed[0]["updated_at"]
    assert [each["id"] for each in ann.get(f"/repos/acme/tool/issues/comments?since={since}").json()] == [old]


@pytest.mark.parametrize("how", ["502", "cut"])
def test_a_write_happens_though_its_reply_is_lost(hub: Hub, ann: httpx.Client, how: str) -> None:
    hub.issue()
    hub.after_write("POST /repos/*/comments", "502" if how == "502" else "cut")
    if how == "502":
        assert ann.post(COMMENTS, json={"body": "once"}).status_code == 502
    else:
        with pytest.raises(httpx.RemoteProtocolError):
            ann.post(COMMENTS, json={"body": "once"})
    assert hub.bodies(1) == ["once"]
    assert hub.requests[-1].done
    assert ann.post(COMMENTS, json={"body": "twice"}).status_code == 201


def test_what_fails_was_not_done(hub: Hub, ann: httpx.Client) -> None:
    hub.issue()
    hub.fail("POST *", times=1, status=500)
    hub.secondary_limit("POST *", retry_after=2)
    hub.cut("POST *")
    assert ann.post(COMMENTS, json={"body": "no"}).status_code == 500
    refused = ann.post(COMMENTS, json={"body": "no"})
    assert (refused.status_code, refused.headers["retry-after"]) == (403, "2")
    with pytest.raises(httpx.RemoteProtocolError):
        ann.post(COMMENTS, json={"body": "no"})
    hub.down()
    with pytest.raises(httpx.TransportError):
        ann.post(COMMENTS, json={"body": "no"})
    hub.up()
    assert ann.get(COMMENTS).json() == []


def test_a_quota_that_is_used_up_says_until_when(hub: Hub, ann: httpx.Client) -> None:
    hub.issue()
    hub.quota.limit = 1
    assert ann.get(COMMENTS).status_code == 200
    refused = ann.get(COMMENTS)
    assert refused.status_code == 403
    assert refused.headers["x-ratelimit-remaining"] == "0"
    assert (
        int(refused.headers["x-ratelimit-reset"]) == hub.quota.reset == ann.get("/rate_limit").json()["rate"]["reset"]
    )
    hub.quota.renew()
    assert ann.get(COMMENTS).status_code == 200


def test_a_reaction_is_left_once(hub: Hub, ann: httpx.Client) -> None:
    hub.issue()
    comment = hub.comment("bob", 1, "look")
    where = f"/repos/acme/tool/issues/comments/{comment}/reactions"
    assert [ann.post(where, json={"content": "eyes"}).status_code for _ in range(2)] == [201, 200]
    assert ann.post(where, json={"content": "shrug"}).status_code == 422
    assert hub.reactions(comment) == [("ann", "eyes")]


def test_a_protected_branch_takes_nothing_until_the_check_has_succeeded(hub: Hub, ann: httpx.Client) -> None:
    number = hub.pull("topic")
    hub.protect("main", ("service/gate",))
    sha = hub.pull_of(number)["head"]["sha"]
    merge = f"/repos/acme/tool/pulls/{number}/merge"
    run = {"name": "service/gate", "head_sha": sha}
    assert ann.post("/repos/acme/tool/check-runs", json=run).status_code == 403
    hub.app()
    ours = client(hub, hub.installation_token())
    made = ours.post("/repos/acme/tool/check-runs", json=run).json()
    assert ann.put(merge, json={}).status_code == 405
    many = [{"path": "a", "start_line": 1, "end_line": 1, "annotation_level": "failure", "message": "no"}] * 51
    done = {"conclusion": "success", "output": {"title": "t", "summary": "s", "annotations": many}}
    where = f"/repos/acme/tool/check-runs/{made['id']}"
    assert ours.patch(where, json=done).status_code == 422
    done["output"] = {"title": "t", "summary": "s", "annotations": many[:50]}
    assert ours.patch(where, json=done).json()["output"]["annotations_count"] == 50
    new = hub.push_head(number)
    assert ann.put(merge, json={}).status_code == 405
    assert (
        ann.post(f"/repos/acme/tool/statuses/{new}", json={"state": "success", "context": "service/gate"}).status_code
        == 201
    )
    assert ann.put(merge, json={"sha": sha}).status_code == 409
    assert ann.put(merge, json={"sha": new}).json()["merged"] is True


def test_permissions_are_what_github_calls_them(hub: Hub, ann: httpx.Client) -> None:
    hub.user("meg", role="maintain")
    hub.user("eve", role="none")

    def of(login: str) -> tuple[int, object, object]:
        said = ann.get(f"/repos/acme/tool/collaborators/{login}/permission")
        return said.status_code, said.json().get("permission"), said.json().get("role_name")

    assert of("acme") == (200, "admin", "admin")
    assert of("meg") == (200, "write", "maintain")
    assert of("bob") == (200, "read", "read")
    assert of("eve") == (200, "none", "none")
    assert of("nobody")[0] == 404
    assert client(hub, hub.tokens["bob"]).get("/repos/acme/tool/collaborators/ann/permission").status_code == 403
    assert client(hub, "wrong").get("/user").json()["message"] == "Bad credentials"


def test_one_pull_request_of_a_head_and_a_draft_becomes_ready_by_graphql(hub: Hub, ann: httpx.Client) -> None:
    hub.push("topic")
    asked = {"title": "t", "head": "topic", "base": "main", "draft": True}
    made = ann.post("/repos/acme/tool/pulls", json=asked).json()
    assert ann.post("/repos/acme/tool/pulls", json=asked).status_code == 422
    (found,) = ann.get("/repos/acme/tool/pulls?head=acme:topic").json()
    assert (found["number"], found["draft"]) == (made["number"], True)
    assert ann.patch(f"/repos/acme/tool/pulls/{made['number']}", json={"draft": False}).json()["draft"] is True
    query = "mutation($id: ID!) { markPullRequestReadyForReview(input: {pullRequestId: $id}) { clientMutationId } }"
    done = ann.post("/graphql", json={"query": query, "variables": {"id": made["node_id"]}}).json()
    assert "errors" not in done
    assert hub.pull_of(made["number"])["draft"] is False
