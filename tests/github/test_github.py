"""The GitHub of the tests behaves as the product's tests assume of GitHub."""

import httpx
import pytest

from tests.github.hub import Hub

COMMENTS = "/repos/acme/tool/issues/1/comments"


@pytest.fixture
def ann(github: Hub) -> httpx.Client:
    return client(github, github.tokens["ann"])


def client(github: Hub, token: str) -> httpx.Client:
    return httpx.Client(
        base_url=github.address, headers={"Authorization": f"Bearer {token}"}, trust_env=False, timeout=60
    )


def test_who_has_seen_it_is_told_so_for_free(github: Hub, ann: httpx.Client) -> None:
    github.issue()
    first = ann.get(COMMENTS)
    again = ann.get(COMMENTS, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert first.headers["x-ratelimit-remaining"] == again.headers["x-ratelimit-remaining"] == "4999"
    github.comment("bob", 1, "new")
    assert ann.get(COMMENTS, headers={"If-None-Match": first.headers["etag"]}).status_code == 200
    assert [(seen.status, seen.free) for seen in github.requests] == [(200, False), (304, True), (200, False)]


def test_pages_lead_from_one_to_the_next(github: Hub, ann: httpx.Client) -> None:
    github.issue()
    for number in range(5):
        github.comment("bob", 1, str(number))
    bodies, where = [], f"{COMMENTS}?per_page=2"
    while where:
        page = ann.get(where)
        bodies += [each["body"] for each in page.json()]
        where = page.links.get("next", {}).get("url", "")
    assert bodies == list("01234")


def test_comments_of_the_repository_come_by_their_last_change(github: Hub, ann: httpx.Client) -> None:
    github.issue()
    github.issue()
    old, new = github.comment("bob", 1, "old"), github.comment("bob", 2, "new")
    github.edit_comment(old, "changed", as_="bob")
    listed = ann.get("/repos/acme/tool/issues/comments?sort=updated&direction=desc").json()
    dates = {each["id"]: each["updated_at"] for each in listed}
    assert list(dates.values()) == sorted(dates.values(), reverse=True)
    assert {each["id"] for each in listed if each["updated_at"] != each["created_at"]} == {old}
    since = ann.get(f"/repos/acme/tool/issues/comments?since={dates[old]}").json()
    assert {each["id"] for each in since} == {each for each in (old, new) if dates[each] >= dates[old]}


@pytest.mark.parametrize("how", ["502", "cut"])
def test_a_write_happens_though_its_reply_is_lost(github: Hub, ann: httpx.Client, how: str) -> None:
    github.issue()
    github.after_write("POST /repos/*/comments", "502" if how == "502" else "cut")
    if how == "502":
        assert ann.post(COMMENTS, json={"body": "once"}).status_code == 502
    else:
        with pytest.raises(httpx.RemoteProtocolError):
            ann.post(COMMENTS, json={"body": "once"})
    assert github.bodies(1) == ["once"]
    assert github.requests[-1].done
    assert ann.post(COMMENTS, json={"body": "twice"}).status_code == 201


def test_what_fails_was_not_done(github: Hub, ann: httpx.Client) -> None:
    github.issue()
    github.fail("POST *", times=1, status=500)
    github.secondary_limit("POST *", retry_after=2)
    github.cut("POST *")
    assert ann.post(COMMENTS, json={"body": "no"}).status_code == 500
    refused = ann.post(COMMENTS, json={"body": "no"})
    assert (refused.status_code, refused.headers["retry-after"]) == (403, "2")
    with pytest.raises(httpx.RemoteProtocolError):
        ann.post(COMMENTS, json={"body": "no"})
    github.down()
    with pytest.raises(httpx.TransportError):
        ann.post(COMMENTS, json={"body": "no"})
    github.up()
    assert ann.get(COMMENTS).json() == []


def test_a_quota_that_is_used_up_says_until_when(github: Hub, ann: httpx.Client) -> None:
    github.issue()
    github.quota.limit = 1
    assert ann.get(COMMENTS).status_code == 200
    refused = ann.get(COMMENTS)
    assert refused.status_code == 403
    assert refused.headers["x-ratelimit-remaining"] == "0"
    assert (
        int(refused.headers["x-ratelimit-reset"])
        == github.quota.reset
        == ann.get("/rate_limit").json()["rate"]["reset"]
    )
    github.quota.renew()
    assert ann.get(COMMENTS).status_code == 200


def test_a_reaction_is_left_once(github: Hub, ann: httpx.Client) -> None:
    github.issue()
    comment = github.comment("bob", 1, "look")
    where = f"/repos/acme/tool/issues/comments/{comment}/reactions"
    assert [ann.post(where, json={"content": "eyes"}).status_code for _ in range(2)] == [201, 200]
    assert ann.post(where, json={"content": "shrug"}).status_code == 422
    assert github.reactions(comment) == [("ann", "eyes")]


def test_a_protected_branch_takes_nothing_until_the_check_has_succeeded(github: Hub, ann: httpx.Client) -> None:
    number = github.pull("topic")
    github.protect("main", ("service/gate",))
    sha = github.pull_of(number)["head"]["sha"]
    merge = f"/repos/acme/tool/pulls/{number}/merge"
    run = {"name": "service/gate", "head_sha": sha}
    assert ann.post("/repos/acme/tool/check-runs", json=run).status_code == 403
    ours = client(github, github.installation_token())
    made = ours.post("/repos/acme/tool/check-runs", json=run).json()
    assert ann.put(merge, json={}).status_code == 405
    many = [{"path": "a", "start_line": 1, "end_line": 1, "annotation_level": "failure", "message": "no"}] * 51
    done = {"conclusion": "success", "output": {"title": "t", "summary": "s", "annotations": many}}
    where = f"/repos/acme/tool/check-runs/{made['id']}"
    assert ours.patch(where, json=done).status_code == 422
    done["output"] = {"title": "t", "summary": "s", "annotations": many[:50]}
    assert ours.patch(where, json=done).json()["output"]["annotations_count"] == 50
    new = github.push_head(number)
    assert ann.put(merge, json={}).status_code == 405
    assert (
        ann.post(f"/repos/acme/tool/statuses/{new}", json={"state": "success", "context": "service/gate"}).status_code
        == 201
    )
    assert ann.put(merge, json={"sha": sha}).status_code == 409
    assert ann.put(merge, json={"sha": new}).json()["merged"] is True


def test_permissions_are_what_github_calls_them(github: Hub, ann: httpx.Client) -> None:
    github.user("meg", role="maintain")
    github.user("eve", role="none")

    def of(login: str) -> tuple[int, object, object]:
        answer = ann.get(f"/repos/acme/tool/collaborators/{login}/permission")
        return answer.status_code, answer.json().get("permission"), answer.json().get("role_name")

    assert of("acme") == (200, "admin", "admin")
    assert of("meg") == (200, "write", "maintain")
    assert of("bob") == (200, "read", "read")
    assert of("eve") == (200, "none", "none")
    assert of("nobody")[0] == 404
    assert client(github, github.tokens["bob"]).get("/repos/acme/tool/collaborators/ann/permission").status_code == 403
    assert client(github, "wrong").get("/user").json()["message"] == "Bad credentials"


def test_one_pull_request_of_a_head_and_a_draft_becomes_ready_by_graphql(github: Hub, ann: httpx.Client) -> None:
    github.push("topic")
    asked = {"title": "t", "head": "topic", "base": "main", "draft": True}
    made = ann.post("/repos/acme/tool/pulls", json=asked).json()
    assert ann.post("/repos/acme/tool/pulls", json=asked).status_code == 422
    (pull,) = ann.get("/repos/acme/tool/pulls?head=acme:topic").json()
    assert (pull["number"], pull["draft"]) == (made["number"], True)
    assert ann.patch(f"/repos/acme/tool/pulls/{made['number']}", json={"draft": False}).json()["draft"] is True
    query = "mutation($id: ID!) { markPullRequestReadyForReview(input: {pullRequestId: $id}) { clientMutationId } }"
    done = ann.post("/graphql", json={"query": query, "variables": {"id": made["node_id"]}}).json()
    assert "errors" not in done
    assert github.pull_of(made["number"])["draft"] is False


def test_a_commit_goes_by_the_name_that_git_gave_it(github: Hub, ann: httpx.Client) -> None:
    number, first, second = github.pull("topic"), "1" * 40, "2" * 40
    for sha in (first, second):
        assert github.push_head(number, sha) == sha
        assert ann.get(f"/repos/acme/tool/pulls/{number}").json()["head"]["sha"] == sha
    ours = client(github, github.installation_token())
    run = {"name": "service/gate", "head_sha": second, "conclusion": "success"}
    assert ours.post("/repos/acme/tool/check-runs", json=run).json()["head_sha"] == second
    assert [each["name"] for each in github.checks(second)] == ["service/gate"]
    assert github.checks(first) == []
