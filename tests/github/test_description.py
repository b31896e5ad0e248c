"""The Hub matches GitHub's description; the fixture checks that at the end."""

import httpx
import pytest

from tests.github.description import Description
from tests.github.hub import Hub
from tests.github.keys import app_jwt, private_key
from tests.github.router import not_found
from tests.github.tools import need
from tests.github.wire import Reply, Request

R = "/repos/acme/tool"
BRANCH = Request("GET", f"{R}/branches/a/b")


@pytest.mark.long
def test_a_reply_that_is_not_as_described_is_seen() -> None:
    need("openapi")
    described = Description()
    described.check(BRANCH, Reply(200, {"name": 5}))
    described.check(Request("POST", f"{R}/issues/1/comments", body=b'{"text": "x"}'), Reply(418))
    described.check(Request("POST", f"{R}/issues/1/comments", body=b"{}"), not_found().reply)
    described.check(Request("GET", f"{R}/issues", {"colour": "red"}), Reply(200, []))
    described.check(Request("GET", f"{R}/nothing"), Reply(200))
    violations = "\n".join(described.violations)
    assert 'GET /repos/acme/tool/branches/a/b 200 /: "commit" is a required property' in violations
    assert 'GET /repos/acme/tool/branches/a/b 200 /name: 5 is not of type "string"' in violations
    assert "POST /repos/acme/tool/issues/1/comments 418: no such status, only 201" in violations
    assert "asked with colour: no such parameter" in violations
    assert "GET /repos/acme/tool/nothing: GitHub has no such endpoint" in violations
    assert "comments 404" not in violations


def test_every_endpoint(github: Hub, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Calls every endpoint that our client may use."""
    key = tmp_path_factory.mktemp("app") / "key.pem"
    key.write_text(private_key())
    number, issue = github.pull(draft=True), github.issue()
    sha = github.pull_of(number)["head"]["sha"]
    github.protect("main", ("service/gate",))
    comment = github.comment("bob", issue, "hello")

    def client(credential: str) -> httpx.Client:
        return httpx.Client(
            base_url=github.address, headers={"Authorization": f"Bearer {credential}"}, trust_env=False, timeout=60
        )

    ann, owner = client(github.tokens["ann"]), client(github.tokens["acme"])
    app, bot = client(app_jwt(4242, str(key))), client(github.installation_token())

    def made(reply: httpx.Response) -> int:
        assert reply.status_code in (200, 201), (reply.request.method, reply.request.url, reply.status_code, reply.text)
        return int(reply.json()["id"])

    reaction = made(ann.post(f"{R}/issues/comments/{comment}/reactions", json={"content": "eyes"}))
    made(bot.post(f"{R}/issues/comments/{comment}/reactions", json={"content": "+1"}))
    mine = made(ann.post(f"{R}/issues/{issue}/comments", json={"body": "mine"}))
    made(ann.patch(f"{R}/issues/comments/{mine}", json={"body": "changed"}))
    made(ann.patch(f"{R}/pulls/{number}", json={"title": "Other", "body": "Words"}))
    made(ann.post(f"{R}/statuses/{sha}", json={"state": "pending", "context": "other", "description": "d"}))
    note = {"path": "a.py", "start_line": 1, "end_line": 2, "annotation_level": "failure", "message": "no"}
    output = {"title": "t", "summary": "s", "annotations": [note]}
    run = made(bot.post(f"{R}/check-runs", json={"name": "service/gate", "head_sha": sha, "status": "in_progress"}))
    made(bot.patch(f"{R}/check-runs/{run}", json={"conclusion": "failure", "status": "completed", "output": output}))
    installation = made(app.get(f"{R}/installation"))
    assert app.post(f"/app/installations/{installation}/access_tokens").status_code == 201
    where = {
        ann: ("/user", "/users/bob", "/rate_limit", R, f"{R}/issues/{issue}", f"{R}/issues/{number}", f"{R}/pulls",
              f"{R}/issues/comments", f"{R}/issues/comments/{comment}", f"{R}/issues/{issue}/comments",
              f"{R}/issues/comments/{comment}/reactions", f"{R}/pulls/{number}", f"{R}/pulls?head=acme:topic&state=all",
              f"{R}/collaborators/bob/permission", f"{R}/collaborators/ann/permission", f"{R}/branches/main",
              f"{R}/git/ref/heads/topic", f"{R}/git/matching-refs/heads/t", f"{R}/check-runs/{run}",
              f"{R}/check-runs/{run}/annotations", f"{R}/commits/topic/check-runs", f"{R}/commits/{sha}/check-runs",
              f"{R}/commits/{sha}/statuses", f"{R}/commits/topic/status"),
        owner: (f"{R}/branches/main/protection",),
        app: ("/app",),
    }  # fmt: skip
    for who, paths in where.items():
        assert {path: who.get(path).status_code for path in paths} == dict.fromkeys(paths, 200)
    assert ann.delete(f"{R}/issues/comments/{comment}/reactions/{reaction}").status_code == 204
    assert ann.delete(f"{R}/issues/comments/{mine}").status_code == 204
    made(bot.patch(f"{R}/check-runs/{run}", json={"conclusion": "success", "status": "completed", "output": output}))
    query = "mutation($id: ID!) { markPullRequestReadyForReview(input: {pullRequestId: $id}) { clientMutationId } }"
    node = {"id": github.pull_of(number)["node_id"]}
    assert "errors" not in ann.post("/graphql", json={"query": query, "variables": node}).json()
    assert ann.put(f"{R}/pulls/{number}/merge", json={"sha": sha}).status_code == 200
