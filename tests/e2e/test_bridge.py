"""The bridge of a running service, called over real connections."""

import json
import threading
import time
from typing import Any

import httpx
import pytest

from tests.e2e.bridge import client, serving, token
from tests.e2e.conftest import Installed

ASKS_ONCE = """
if [ "$SERVICE_CONTINUATION" = answered ]; then
  echo '{"service_result": {"decision": "approved", "summary": "as you said"}}'
else
  echo '{"service_result": {"decision": "approved", "summary": "a question",
    "human_questions": [{"id": "color", "prompt": "which?"}]}}'
fi
"""
BODY = {"message": "Paint it", "repo": "acme/shop"}


@pytest.mark.long
@pytest.mark.ruling("F6", "J6", "J7", "J9")
def test_an_ask_is_waited_for_answered_and_followed_over_http(installed: Installed) -> None:
    installed.agent("painter", ASKS_ONCE)
    installed("daemon", "start")
    with client(installed) as http:
        job_id = http.post("/v1/agents/painter/ask", json=BODY).json()["job_id"]
        job, tag = http.get(f"/v1/jobs/{job_id}").json(), ""
        while not job["round"]:
            seen = http.get(f"/v1/jobs/{job_id}?wait=20s", headers={"If-None-Match": tag})
            job, tag = (seen.json(), seen.headers["ETag"]) if seen.status_code == 200 else (job, tag)
        assert job["round"]["questions"][0]["prompt"] == "which?"
        resume = f"/v1/jobs/{job_id}/resume"
        wrong = http.post(resume, json={"verb": "retry"})
        assert wrong.status_code == 409
        assert "answer" in wrong.json()["error"], "the verbs it takes are named"
        longer = {"verb": "extend", "text": "1h"}
        installed.wait_for(lambda: http.post(resume, json=longer).json()["applied"] is True)
        events = _follow(http, job_id)
        key = {"Idempotency-Key": "the-answer"}
        order = {"verb": "answer", "text": "red", "round": 1, "digest": job["round"]["digest"]}
        answers = [http.post(resume, json=order, headers=key).json() for _ in range(2)]
        assert answers[0] == answers[1]
        assert answers[0]["applied"] is not ("it is kept" in answers[0]["message"]), "a busy worker takes it later"
        installed.wait_for(lambda: '"resume_accepted"' in json.dumps(installed.json("job", "events", job_id)))
        late = http.post(resume, json=order)
        assert late.status_code == 409
        assert "bridge" in late.json()["error"], "a late one is told who answered"
        events.join(60)
        installed.wait_for(lambda: bool(http.get(f"/v1/jobs/{job_id}/tree").json()["over"]))
        tree = http.get(f"/v1/jobs/{job_id}/tree").json()
        assert tree["task"]["state"] == "done"
        assert http.get(f"/v1/jobs/{tree['jobs'][-1]['job_id']}").json()["result"]["summary"] == "as you said"
    assert not events.is_alive()
    assert events.told[-1] == "end"
    shown = installed.json("job", "events", job_id)
    assert any("bridge" in json.dumps(event) for event in shown), "the channel is recorded"


class _Follower(threading.Thread):
    """A program that reads the stream to its end."""

    def __init__(self, http: httpx.Client, job_id: str) -> None:
        super().__init__(daemon=True)
        self.told: list[str] = []
        self._http, self._job_id = http, job_id

    def run(self) -> None:
        path, headers = f"/v1/jobs/{self._job_id}/events", {"Accept": "text/event-stream"}
        with self._http.stream("GET", path, headers=headers) as answer:
            self.told += [line[7:] for line in answer.iter_lines() if line.startswith("event: ")]


def _follow(http: httpx.Client, job_id: str) -> _Follower:
    follower = _Follower(http, job_id)
    follower.start()
    return follower


@pytest.mark.ruling("J9", "J10")
@pytest.mark.long
def test_a_bridge_that_is_killed_in_the_middle_of_calls_has_started_each_once_or_not_at_all(
    installed: Installed,
) -> None:
    installed.agent("painter", 'echo \'{"service_result": {"decision": "approved", "summary": "ok"}}\'')
    with (installed.home / "config.toml").open("a") as config:
        config.write("[bridge]\nenabled = false\n")
    installed("daemon", "start")
    orders: dict[str, set[str]] = {f"order-{number}": set() for number in range(3)}
    for number, (key, ids) in enumerate(orders.items()):
        with serving(installed) as (process, http):
            caller = threading.Thread(target=_ask, args=(http, key, ids), daemon=True)
            caller.start()
            time.sleep(0.06 * number)
            process.kill()
            caller.join(30)
    with serving(installed) as (_, http):
        for key, ids in orders.items():
            _ask(http, key, ids)
            assert len(ids) == 1, (key, ids)
        _a_rotated_token_opens_a_running_bridge_at_once(installed, http)
    started = {job["job_id"] for job in installed.json("job", "list")}
    assert started == {job_id for ids in orders.values() for job_id in ids}
    for job_id in started:
        assert installed.wait_until_ended(job_id)["state"] == "succeeded"


def _ask(http: httpx.Client, key: str, ids: set[str]) -> None:
    try:
        answer = http.post("/v1/agents/painter/ask", json=BODY, headers={"Idempotency-Key": key})
    except httpx.TransportError:
        return
    assert answer.status_code == 200, answer.text
    job: dict[str, Any] = answer.json()
    ids.add(job["job_id"])


def _a_rotated_token_opens_a_running_bridge_at_once(installed: Installed, http: httpx.Client) -> None:
    installed("bridge", "token", "--rotate")
    assert http.get("/v1/jobs").status_code == 401
    assert http.get("/v1/jobs", headers=token(installed)).status_code == 200
