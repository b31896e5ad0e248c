"""Jobs over HTTP: their fields, waiting for a change, lists, events as they happen (rulings J6, J9)."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import text

from bridge.http.wire.schemas import Job
from bridge.operations.jobs.views import Event, JobSummary, Tree
from bridge.operations.service import Service
from tests.bridge import seeds
from tests.bridge.conftest import Live
from tests.bridge.http.conftest import Document
from tests.bridge.reviewed import TASK_BRANCH, reviewed
from tests.bridge.seeds import ROOT
from tests.waiting import PATIENCE, until
from workflows.model.states import JobState, TaskState

JOB = f"/v1/jobs/{ROOT}"


def assert_documented(document: Document, value: dict[str, Any], name: str) -> None:
    """Assert exactly the fields of the document's schema: internal fields of a row are hidden."""
    schema = document["components"]["schemas"][name]
    assert set(value) == set(schema["properties"]) == set(schema["required"])
    assert "revision" not in value


class TestLog:
    async def test_it_is_read_back_and_followed_by_cursors(
        self, service: Service, document: Document, call: httpx.AsyncClient
    ) -> None:
        seeds.write(service, seeds.task(), seeds.job(state=JobState.RUNNING, ended_at=None))
        assert (await call.get(f"{JOB}/log")).json()["attempt"] == 0
        folder = service.home.runs / f"{ROOT}.1"
        folder.mkdir(parents=True)
        output = folder / "stdout.log"
        output.write_text("".join(f"{'x' * 4095} {n} {service.home.root}/a\n" for n in range(5)))
        seeds.payload(service, ROOT, {}, host=service.settings.host, run_dir=str(folder))
        last = (await call.get(f"{JOB}/log?limit=2")).json()
        assert_documented(document, last, "Log")
        assert_documented(document, last["entries"][0], "Entry")
        assert [each["text"][-9:] for each in last["entries"]] == [" [path]/a"] * 2
        earlier = (await call.get(f"{JOB}/log?before={last['earlier_cursor']}")).json()
        assert (len(earlier["entries"]), earlier["earlier_cursor"]) == (3, None)
        assert earlier["next_cursor"] == last["earlier_cursor"]
        with output.open("a") as more:
            more.write("one more\n")
        following = (await call.get(f"{JOB}/log?cursor={last['next_cursor']}")).json()
        assert [each["text"] for each in following["entries"]] == ["one more"]
        assert following["over"] is False

    async def test_what_cannot_be_read_is_refused(self, service: Service, call: httpx.AsyncClient) -> None:
        seeds.write(service, seeds.task(), seeds.job())
        seeds.payload(service, ROOT, {}, host="elsewhere")
        statuses = [(await call.get(f"{JOB}/log{query}")).status_code for query in ("", "?attempt=2", "?limit=0")]
        assert statuses == [409, 404, 400]


@pytest.mark.ruling("J6")
class TestProjection:
    async def test_it_has_the_fields_of_the_document_and_no_others(
        self, service: Service, document: Document, call: httpx.AsyncClient
    ) -> None:
        seeds.write(service, seeds.task(), seeds.job(), seeds.round_())
        seeds.payload(service, ROOT, {"service_result": {"decision": "approved"}, "result_observation": {"x": 1}})
        job = (await call.get(JOB)).json()
        assert_documented(document, job, "Job")
        assert_documented(document, job["round"], "Round")
        Job.model_validate(job)
        assert (job["result"], job["observation"]) == ({"decision": "approved"}, {"x": 1})
        assert job["round"]["questions"][0]["id"] == "color"
        assert job["links"]["tree"] == f"{JOB}/tree"

    async def test_the_short_way_to_it_tells_what_the_long_way_tells(
        self, service: Service, call: httpx.AsyncClient
    ) -> None:
        seeds.write(service, seeds.task(), seeds.job())
        short, long = await call.get(JOB), await call.get(f"{JOB}?wait=0s")
        assert (short.content, short.headers["ETag"]) == (long.content, long.headers["ETag"])
        known = {"If-None-Match": short.headers["ETag"]}
        assert (await call.get(JOB, headers=known)).status_code == 304
        assert (await call.head(JOB)).headers["Allow"] == "GET"

    async def test_a_store_that_cannot_be_read_is_told_of(self, service: Service, call: httpx.AsyncClient) -> None:
        seeds.write(service, seeds.task(), seeds.job())
        assert (await call.get(JOB)).status_code == 200
        with service.store.begin() as connection:
            connection.execute(text("DROP TABLE rounds"))
        answer = await call.get(JOB)
        assert (answer.status_code, answer.json()["code"]) == (503, "store_unreachable")

    async def test_it_tells_no_prompt_no_path_and_no_process(self, service: Service, call: httpx.AsyncClient) -> None:
        seeds.repo(service, "/srv/checkouts/shop")
        home = str(service.home.root)
        seeds.write(
            service,
            seeds.task(),
            seeds.job(
                reason=f"lost in {home}/worktrees/x",
                summary="/srv/checkouts/shop/a.py, not /srv/checkouts/shops",
            ),
            seeds.event(1, message=f"merged in {home}/worktrees/y", data={"where": "/srv/checkouts/shop"}),
        )
        seeds.payload(
            service,
            ROOT,
            {"service_result": {"summary": f"wrote {home}/worktrees/x/b.py"}},
            worktree=f"{home}/worktrees/x",
            diagnostics={"stderr": "SECRET_ENV=1"},
            outcome={"session": "s-1"},
        )
        for path in ("", "/tree", "/events"):
            text = (await call.get(JOB + path)).text
            assert home not in text
            assert "/srv/checkouts/shop/" not in text
            assert '"/srv/checkouts/shop"' not in text
            for never in ("SECRET_ENV", "/run", "prompt", '"pid"', '"host"', '"worktree"'):
                assert never not in text.replace("run_id", ""), (path, never)
        job = (await call.get(JOB)).json()
        assert job["reason"] == "lost in [path]/worktrees/x"
        assert job["summary"] == "[path]/a.py, not /srv/checkouts/shops"

    async def test_a_round_that_is_over_or_of_another_coordinator_is_not_its_own(
        self, service: Service, call: httpx.AsyncClient
    ) -> None:
        other = seeds.round_(round_id="r2", coordinator_id=f"{ROOT}.1", job_id=f"{ROOT}.1")
        seeds.write(service, seeds.task(), seeds.job(), seeds.job(f"{ROOT}.1"), seeds.round_(closed_at=3.0), other)
        assert (await call.get(JOB)).json()["round"] is None
        assert (await call.get(f"{JOB}.1")).json()["round"]["round_id"] == "r2"

    async def test_a_job_links_to_the_workflow_that_ran_it(self, service: Service, call: httpx.AsyncClient) -> None:
        state = {"pid": 1, "phase": "running", "started_at": "2026-01-01T00:00:00Z", "version": "1"}
        state |= {"ui_url": "http://127.0.0.1:8233", "namespace": "service"}
        service.home.daemon_state.write_text(json.dumps(state))
        seeds.write(service, seeds.task(), seeds.job(), seeds.job(f"{ROOT}.1"))
        seeds.write(service, seeds.job(f"{ROOT}.2", continuation="normal"))
        shown = [(await call.get(f"{JOB}{each}")).json()["links"]["temporal"] for each in ("", ".1", ".2")]
        ui = "http://127.0.0.1:8233/namespaces/service/workflows"
        assert shown == [f"{ui}/{ROOT}", f"{ui}/{ROOT}.1", f"{ui}/{ROOT}"]


@pytest.mark.ruling("J6")
class TestWaiting:
    async def test_it_answers_as_soon_as_the_job_changes(self, service: Service, call: httpx.AsyncClient) -> None:
        seeds.write(service, seeds.task(), seeds.job())

        async def change() -> None:
            await asyncio.sleep(0.3)
            seeds.write(service, seeds.job(state=JobState.SUCCEEDED, revision=2, ended_at=2.0))

        begun = time.monotonic()
        answer, _ = await asyncio.gather(call.get(f"{JOB}?wait=30s"), change())
        assert answer.json()["state"] == "succeeded"
        assert 0.25 < time.monotonic() - begun < 15

    async def test_it_answers_unchanged_when_the_time_is_over_and_at_once_when_the_job_is(
        self, service: Service, call: httpx.AsyncClient
    ) -> None:
        seeds.write(service, seeds.task(), seeds.job())
        begun = time.monotonic()
        assert (await call.get(f"{JOB}?wait=300ms")).json()["state"] == "running"
        assert time.monotonic() - begun >= 0.3
        seeds.write(service, seeds.job(state=JobState.FAILED, revision=2, ended_at=2.0))
        begun = time.monotonic()
        assert (await call.get(f"{JOB}?wait=30s")).json()["state"] == "failed"
        assert time.monotonic() - begun < 15

    async def test_a_change_between_two_looks_is_not_missed(self, service: Service, call: httpx.AsyncClient) -> None:
        seeds.write(service, seeds.task(), seeds.job())
        tag = (await call.get(JOB)).headers["ETag"]
        assert (await call.get(JOB, headers={"If-None-Match": tag})).status_code == 304
        seeds.write(service, seeds.job(reason="now", revision=2))
        answer = await call.get(f"{JOB}?wait=30s", headers={"If-None-Match": tag})
        assert (answer.status_code, answer.json()["reason"]) == (200, "now")

    @pytest.mark.parametrize("wait", ["30", "soon", "61s", "-1s", ""])
    async def test_a_time_that_is_none_is_refused(self, service: Service, call: httpx.AsyncClient, wait: str) -> None:
        seeds.write(service, seeds.task(), seeds.job())
        assert (await call.get(f"{JOB}?wait={wait}")).status_code == 400

    async def test_others_are_served_while_some_wait(self, service: Service, live: Live) -> None:
        seeds.write(service, seeds.task(), seeds.job())
        async with live.client() as client:
            waiting = [asyncio.create_task(client.get(f"{JOB}?wait=60s", timeout=PATIENCE)) for _ in range(20)]
            await asyncio.sleep(0.3)
            assert (await client.get(JOB)).status_code == 200
            assert not any(each.done() for each in waiting)
            seeds.write(service, seeds.job(state=JobState.SUCCEEDED, revision=2, ended_at=2.0))
            assert {each.status_code for each in await asyncio.gather(*waiting)} == {200}


@pytest.mark.ruling("J9")
class TestLists:
    async def test_pages_follow_one_another_without_a_gap_or_a_repeat(
        self, service: Service, call: httpx.AsyncClient
    ) -> None:
        names = [f"job-{number:012d}" for number in range(7)]
        for number, name in enumerate(names):
            seeds.write(service, seeds.task(name), seeds.job(name, queued_at=float(number // 2)))
        seen: list[str] = []
        query = "?limit=2"
        while query:
            page = (await call.get(f"/v1/jobs{query}")).json()
            seen += [job["job_id"] for job in page["jobs"]]
            JobSummary.model_validate(page["jobs"][0])
            query = f"?limit=2&cursor={page['next_cursor']}" if page["next_cursor"] else ""
        assert seen == sorted(names, key=lambda name: (int(name[4:]) // 2, name), reverse=True)

    async def test_filters_are_those_of_the_command_line(self, service: Service, call: httpx.AsyncClient) -> None:
        seeds.write(service, seeds.task(), seeds.job(), seeds.job(f"{ROOT}.1", state=JobState.QUEUED, agent="mason"))

        async def found(query: str) -> list[str]:
            return [job["job_id"] for job in (await call.get(f"/v1/jobs?{query}")).json()["jobs"]]

        assert await found("state=queued") == [f"{ROOT}.1"]
        assert await found("agent=scout") == [ROOT]
        assert await found("roots=true") == [ROOT]
        assert await found("repo=acme/other") == []
        assert sorted(await found(f"tree={ROOT}.1")) == [ROOT, f"{ROOT}.1"]
        assert (await call.get("/v1/jobs?state=done")).status_code == 400
        assert (await call.get("/v1/jobs?tree=job-999999999999")).status_code == 404
        assert (await call.get("/v1/jobs?tree=")).status_code == 400, "the document's pattern takes no empty id"

    async def test_trees_are_paged_and_filtered_and_each_has_its_first_job(
        self, service: Service, document: Document, call: httpx.AsyncClient
    ) -> None:
        other = "job-bbbbbbbbbbbb"
        done: dict[str, Any] = {"state": TaskState.DONE, "ended_at": 3.0, "title": f"look at {service.home.root}/x"}
        seeds.write(service, seeds.task(opened_at=1.0, **done), seeds.job(), seeds.job(f"{ROOT}.1"))
        seeds.write(service, seeds.task(other, opened_at=2.0), seeds.job(other, state=JobState.QUEUED))
        first = (await call.get("/v1/trees?limit=1")).json()
        second = (await call.get(f"/v1/trees?limit=1&cursor={first['next_cursor']}")).json()
        assert [first["trees"][0]["job_id"], second["trees"][0]["job_id"]] == [other, ROOT]
        assert second["next_cursor"] is None
        [tree] = second["trees"]
        assert_documented(document, tree, "ListedTree")
        assert (tree["tree"]["state"], tree["tree"]["title"]) == ("done", "look at [path]/x")
        for query, roots in (("state=queued", [other]), ("search=LOOK+AT", [ROOT]), ("repo=acme/other", [])):
            assert [each["job_id"] for each in (await call.get(f"/v1/trees?{query}")).json()["trees"]] == roots
        assert (await call.get("/v1/trees?state=succeeded")).status_code == 400

    @pytest.mark.parametrize("cursor", ["", "x", "e30", "W10", "WzEsMl0", "WyJhIiwgMV0", "bnVsbA", "%C3%A9"])
    async def test_a_cursor_that_is_none_is_refused(self, call: httpx.AsyncClient, cursor: str) -> None:
        assert (await call.get(f"/v1/jobs?cursor={cursor}")).status_code == 400

    async def test_a_tree_is_told_whole(self, service: Service, document: Document, call: httpx.AsyncClient) -> None:
        seeds.write(service, seeds.task(), seeds.job(), seeds.job(f"{ROOT}.1"))
        tree = (await call.get(f"{JOB}.1/tree")).json()
        Tree.model_validate(tree)
        assert_documented(document, tree["task"], "Task")
        assert_documented(document, tree["jobs"][0], "JobSummary")
        assert [job["job_id"] for job in tree["jobs"]] == [ROOT, f"{ROOT}.1"]

    async def test_events_come_in_pages_of_a_job_or_its_tree(self, service: Service, call: httpx.AsyncClient) -> None:
        events = [seeds.event(1), seeds.event(2, f"{ROOT}.1"), seeds.event(3)]
        seeds.write(service, seeds.task(), seeds.job(), seeds.job(f"{ROOT}.1"), *events)

        async def found(path: str) -> tuple[list[int], int | None]:
            page = (await call.get(f"/v1/jobs/{path}")).json()
            return [Event.model_validate(each).seq for each in page["events"]], page["next_cursor"]

        assert await found(f"{ROOT}/events") == ([1, 2, 3], None)
        assert await found(f"{ROOT}/events?limit=2") == ([1, 2], 2)
        assert await found(f"{ROOT}/events?cursor=2") == ([3], None)
        assert await found(f"{ROOT}.1/events") == ([2], None)
        assert await found(f"{ROOT}.1/events?whole_tree=true") == ([1, 2, 3], None)
        assert await found(f"{ROOT}/events?whole_tree=false") == ([1, 3], None)


async def lines(answer: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    """Yield the events of a stream, as a browser would read them."""
    event: dict[str, Any] = {}
    async for line in answer.aiter_lines():
        if not line and event:
            yield event
            event = {}
        elif line and not line.startswith(":"):
            name, _, value = line.partition(": ")
            event[name] = value


@pytest.mark.ruling("J9")
class TestStream:
    STREAM = {"Accept": "text/event-stream"}

    async def test_it_tells_events_as_they_happen_and_ends_with_the_tree(self, service: Service, live: Live) -> None:
        seeds.write(service, seeds.task(), seeds.job(), seeds.event(1))
        answers = []
        async with live.client() as client, client.stream("GET", f"{JOB}/events", headers=self.STREAM) as answer:
            assert answer.headers["Content-Type"].startswith("text/event-stream")
            async for event in lines(answer):
                answers.append(event)
                if event.get("id") == "1":
                    done = seeds.task(state=TaskState.DONE, revision=2, ended_at=2.0)
                    ended = seeds.job(state=JobState.SUCCEEDED, revision=2, ended_at=2.0)
                    seeds.write(service, done, ended, seeds.event(2, kind="delegation_killed"))
        assert [event.get("event") for event in answers if "event" in event] == [
            "delegation_loop_warning",
            "delegation_killed",
            "end",
        ]
        assert json.loads(answers[1]["data"])["message"] == "message 1"

    async def test_it_is_taken_up_where_it_was_cut_off(self, service: Service, live: Live) -> None:
        over = seeds.task(state=TaskState.DONE, ended_at=2.0)
        seeds.write(service, over, seeds.job(state=JobState.SUCCEEDED, ended_at=2.0))
        seeds.write(service, *(seeds.event(number) for number in range(1, 451)))
        async with live.client() as client:

            async def ids(**headers: str) -> list[int]:
                resumed = self.STREAM | headers
                async with client.stream("GET", f"{JOB}/events", headers=resumed) as answer:
                    return [int(event["id"]) async for event in lines(answer) if "id" in event]

            assert await ids() == list(range(1, 451))
            assert await ids(**{"Last-Event-ID": "448"}) == [449, 450]
            finished = await client.get(f"{JOB}/events", headers=self.STREAM | {"Last-Event-ID": "450"})
            assert finished.status_code == 204, "a browser does not come back"
            wrong = await client.get(f"{JOB}/events", headers=self.STREAM | {"Last-Event-ID": "x"})
            assert wrong.status_code == 400

    async def test_of_what_is_not_there_it_says_so(self, live: Live) -> None:
        async with live.client() as client:
            assert (await client.get(f"{JOB}/events", headers=self.STREAM)).status_code == 404

    async def test_who_goes_away_is_not_served_any_more(self, service: Service, live: Live) -> None:
        seeds.write(service, seeds.task(), seeds.job(), seeds.event(1))
        async with live.client() as client:
            async with client.stream("GET", f"{JOB}/events", headers=self.STREAM) as answer:
                async for event in lines(answer):
                    if "id" in event:
                        break
            await until(lambda: "/events" in service.home.audit.read_text(), "the call goes on")


@pytest.mark.ruling("L10", "J9")
class TestGate:
    async def test_it_says_whether_the_work_is_ready(
        self, service: Service, document: Document, call: httpx.AsyncClient, tmp_path: Path
    ) -> None:
        tree = reviewed(service, tmp_path)
        gate = (await call.get(f"{JOB}.3/gate")).json()
        assert_documented(document, gate, "Gate")
        assert (gate["state"], gate["head"]) == ("pending", None)
        assert gate["reasons"][0].endswith(f"next: service job merge {ROOT}.1 {ROOT}.2")
        head = tree.merge("a", "b")
        ready = {"state": "passing", "reasons": [], "head": head, "unseen": []}
        assert (await call.get(f"{JOB}/gate")).json() == ready

    async def test_it_fetches_nothing_and_tells_no_path(
        self, service: Service, call: httpx.AsyncClient, tmp_path: Path
    ) -> None:
        tree = reviewed(service, tmp_path)
        gate = (await call.get(f"{JOB}/gate?pull_request=7")).json()
        assert gate["reasons"][0].endswith(f"is not fetched yet; next: service job gate {ROOT} --pr 7")
        tree.merge("a", "b")
        tree.commit(TASK_BRANCH)
        answer = await call.get(f"{JOB}/gate")
        assert answer.json()["reasons"][0].endswith(f"next: service job review {ROOT}")
        assert str(tmp_path) not in answer.text
        assert (await call.get("/v1/jobs/job-ffffffffffff/gate")).status_code == 404
        assert (await call.get(f"{JOB}/gate?pull_request=0")).status_code == 400
