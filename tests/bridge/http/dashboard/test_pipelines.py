"""Pipelines on their pages: their definition, their firings, starts with a payload (rulings M4, J4)."""

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.client import Client

from activities.settings.home import Home
from activities.store import run_rows
from activities.store.registry import pipeline_rows, repo_rows
from bridge.http.dashboard.parts import firings
from bridge.operations.pipelines import definitions, runs, workflows
from bridge.operations.service import Service
from tests.bridge import seeds
from tests.bridge.http.dashboard.surfer import Shown, Surfer
from tests.temporal.pipeline_stage import PipelineHost, pipeline_host
from tests.waiting import until
from workflows.pipeline.definition import StageKind
from workflows.pipeline.plan import RunState, StageState, Trigger
from workflows.pipeline.read import read
from workflows.pipeline.rows import RunRecord, RunRecords, StageRecord
from workflows.pipeline.syntax import Format

pytestmark = pytest.mark.ruling("M4")

HOLD = "echo begun; touch $STAGE/held; while [ ! -e $STAGE/go ]; do sleep 0.02; done; echo ended"
HOSTILE = "</textarea><script>alert(1)</script> \u202e\"'&"
FILE = """
name: p
repo: acme/shop
schedule: {cron: "0 3 * * 1-5", timezone: Europe/Rome, jitter: 5m}
stages:
  - {id: build, kind: shell, command: 'make "$SERVICE_PAYLOAD_TICKET" <b>', timeout: 5m, retry: 2}
  - {id: look, kind: agent, agent: dev, action: ask, prompt: Look at it, needs: [build]}
"""


@pytest_asyncio.fixture
async def host(
    client: Client, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[PipelineHost]:
    monkeypatch.setenv("STAGE", str(tmp_path / "stage"))
    made = pipeline_host(client, f"dashboard-{tmp_path.name}", home, tmp_path)
    yield made
    made.touch("go")  # releases stages that still wait
    await workflows.delete(made.service, made.name)
    made.service.store.dispose()


@pytest_asyncio.fixture
async def bob(host: PipelineHost) -> AsyncIterator[Surfer]:
    """Open a session of Bob on a service with Temporal."""
    async with Surfer(host.service) as surfer:
        await surfer.enter()
        yield surfer


def put(service: Service, text: str = FILE, name: str = "p") -> None:
    text = text.replace("name: p\n", f"name: {name}\n")
    pipeline_rows.put(service.store, read(text, Format.YAML), text, Format.YAML)


def ran(service: Service, number: int, pipeline: str = "p", **fields: object) -> str:
    """Write a run as a worker would have."""
    run_id = f"prun-{number:012d}"
    base = {"run_id": run_id, "pipeline": pipeline, "repo": "acme/shop", "trigger": Trigger.CLI, "started_at": number}
    record = RunRecord.model_validate(base | {"state": RunState.SUCCEEDED, "finished_at": number + 61.0} | fields)
    stage = StageRecord(
        run_id=run_id, stage_id="build", number=1, kind=StageKind.SHELL, needs=(), state=StageState.SUCCEEDED, attempt=1
    )
    begun = run_rows.RunStart("the file", {"ticket": HOSTILE})
    run_rows.write(service.store, RunRecords(run=record, stages=(stage,)), begun)
    return run_id


def runs_of(shown: Shown) -> list[str]:
    return [link.removeprefix("/ui/runs/") for link in shown.read.links if link.startswith("/ui/runs/prun-")]


class TestList:
    async def test_without_one_it_is_said_how_to_register_one(self, ann: Surfer) -> None:
        words = (await ann.open("/ui/pipelines")).words
        assert "No pipelines yet" in words
        assert "service pipeline add FILE" in words

    async def test_each_tells_its_schedule_and_its_last_run(self, service: Service, ann: Surfer) -> None:
        put(service)
        seeds.register(service, "byhand", "repo: acme/shop\nenabled: false")
        ran(service, 1, state=RunState.SUCCEEDED)
        last = ran(service, 2, state=RunState.FAILED, reason="it broke")
        shown = await ann.open("/ui/pipelines")
        assert runs_of(shown) == [last]
        assert "byhand acme/shop disabled by hand - never" in shown.words
        when = "every Monday to Friday at 03:00 (Europe/Rome), up to 5m later"
        assert f"p acme/shop enabled {when} not known now ✕ failed" in shown.words, "there is no Temporal here"

    async def test_the_next_firing_is_told(self, host: PipelineHost, bob: Surfer) -> None:
        await host.add(FILE)
        at = (await workflows.next_firings(host.service, [host.name]))[host.name][0]
        assert at > time.time()
        for path in ("/ui/pipelines", f"/ui/pipelines/{host.name}"):
            shown = await bob.open(path)
            assert time.strftime("%Y-%m-%d %H:%M", time.localtime(at)) in shown.html, "the exact one is its title"
            assert "not known now" not in shown.words

    async def test_temporal_is_not_asked_again_and_again(
        self, host: PipelineHost, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await host.add(FILE)
        first = firings.next_firings(host.service, [host.name])
        assert first
        assert first[host.name]
        monkeypatch.setattr(firings, "at_once", None)
        assert firings.next_firings(host.service, [host.name]) == first

    async def test_who_looks_waits_once_for_a_temporal_that_hangs(
        self, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        waited: list[float] = []

        def hangs(_: object, seconds: float) -> None:
            waited.append(seconds)
            raise TimeoutError

        monkeypatch.setattr(firings, "at_once", hangs)
        assert [firings.next_firings(service, [name]) for name in ("p", "p", "q")] == [None] * 3
        assert waited == [firings.WAIT_SECONDS]


class TestOne:
    async def test_it_shows_what_its_file_says(self, service: Service, ann: Surfer) -> None:
        put(service)
        shown = await ann.open("/ui/pipelines/p")
        for words in (
            "every Monday to Friday at 03:00 (Europe/Rome), up to 5m later 0 3 * * 1-5",
            'build - make "$SERVICE_PAYLOAD_TICKET" <b> 5m 2',
            "look build dev: ask, Look at it - -",
            "name: p repo: acme/shop",
            "It has not run yet",
        ):
            assert words in shown.words, words
        assert "make &#34;$SERVICE_PAYLOAD_TICKET&#34; &lt;b&gt;" in shown.html

    async def test_one_that_is_not_there_is_said_with_those_that_are(self, service: Service, ann: Surfer) -> None:
        put(service)
        shown = await ann.open("/ui/pipelines/q")
        assert (shown.status, "no pipeline q; known: p" in shown.words) == (404, True)

    async def test_it_is_disabled_and_enabled(self, host: PipelineHost, bob: Surfer) -> None:
        await host.add(FILE)
        place = f"/ui/pipelines/{host.name}"
        off = await bob.send((await bob.open(place)).form(f"{place}/disable"))
        assert (off.status, definitions.get(host.service, host.name).enabled) == (200, False)
        assert f"{host.name} is disabled: no run begins any more." in off.words
        assert "none while it is disabled" in off.words
        refused = await bob.send(off.form(f"{place}/run"))
        assert (refused.status, f"the pipeline {host.name} is disabled" in refused.words) == (400, True)
        on = await bob.send(refused.form(f"{place}/enable"))
        assert definitions.get(host.service, host.name).enabled
        assert "none while it is disabled" not in on.words

    async def test_runs_follow_one_another_page_by_page(self, service: Service, ann: Surfer) -> None:
        put(service)
        made = [ran(service, number) for number in range(45)]
        ran(service, 99, pipeline="other")
        shown, seen = await ann.open("/ui/pipelines/p"), list[str]()
        while True:
            seen += runs_of(shown)
            older = [link for link in shown.read.links if "cursor=" in link]
            if not older:
                break
            shown = await ann.open(older[0])
        assert seen == made[::-1]
        assert "/ui/pipelines/p" in shown.read.links


class TestRunNow:
    async def test_what_its_commands_read_is_offered(self, service: Service, ann: Surfer) -> None:
        put(service)
        fields = (await ann.open("/ui/pipelines/p")).form("/ui/pipelines/p/run").fields
        assert [fields[f"key-{n}"] for n in (1, 2, 3)] == [["ticket"], [""], [""]]

    @pytest.mark.ruling("J4")
    async def test_it_runs_with_its_payload_and_leads_to_the_run(self, host: PipelineHost, bob: Surfer) -> None:
        echo = 'echo "for $SERVICE_PAYLOAD_TICKET: $SERVICE_PAYLOAD_NOTE"; echo odd >&2'
        await host.add(f"name: p\nrepo: acme/shop\nstages:\n  - {{id: build, kind: shell, command: '{echo}'}}\n")
        place = f"/ui/pipelines/{host.name}"
        form = (await bob.open(place)).form(f"{place}/run")
        filled = {"value-1": "T-1", "key-3": "level", "value-3": "high", "more": '{"extra": "a\\nb"}'}
        shown = await bob.send(form, **filled)
        (run,) = runs.list_runs(host.service, runs.RunFilter()).runs
        assert (shown.status, shown.address.partition("?")[0].endswith(f"/ui/runs/{run.id}")) == (200, True)
        assert f"{host.name} runs: {run.id}." in shown.words
        page = host.show(run.id)
        assert (page.trigger, page.payload) == ("dashboard", {"ticket": "T-1", "level": "high", "extra": "a\nb"})
        async with host.working():
            await host.until_over(run.id)
        ended = (await bob.open(f"/ui/runs/{run.id}")).words
        for words in ("● succeeded", "by the dashboard", "What build printed", "for T-1:", "Errors odd", "level high"):
            assert words in ended, words

    @pytest.mark.ruling("J4", "M2")
    async def test_while_a_run_is_active_the_next_is_refused_and_what_was_typed_stays(
        self, host: PipelineHost, bob: Surfer
    ) -> None:
        await host.add("name: p\nrepo: acme/shop\nstages:\n  - {id: build, kind: shell, command: 'true'}\n")
        run_id = await host.run()
        place = f"/ui/pipelines/{host.name}"
        page = await bob.open(place)
        assert f"A run is active, {run_id}" in page.words
        filled = {"key-1": "ticket", "value-1": HOSTILE, "more": "note=first\nother=</textarea>"}
        refused = await bob.send(page.form(f"{place}/run"), **filled)
        assert refused.status == 409
        assert f"already has an active run, {run_id}" in refused.words
        assert "<script>alert" not in refused.html
        assert refused.html.count(" data-typed") == 7, "the script keeps it when something else on the page changes"
        kept = refused.form(f"{place}/run").fields
        assert {name: kept[name] for name in filled if name != "value-1"} == {
            name: [value] for name, value in filled.items() if name != "value-1"
        }
        assert kept["value-1"] == [HOSTILE.replace("\u202e", "\\u202e")]
        assert len(runs.list_runs(host.service, runs.RunFilter()).runs) == 1

    @pytest.mark.ruling("L1")
    async def test_it_may_belong_to_a_pull_request_or_an_issue(self, host: PipelineHost, bob: Surfer) -> None:
        await host.add("name: p\nrepo: acme/shop\nstages:\n  - {id: build, kind: shell, command: 'true'}\n")
        known = repo_rows.get(host.service.store, "acme/shop")
        assert known
        repo_rows.put(host.service.store, "acme/shop", known.path, known.host, "acme/tool")
        place = f"/ui/pipelines/{host.name}"
        page = await bob.open(place)
        for filled, why in (
            ({"pr": "7", "issue": "3"}, "not to both"),
            ({"pr": "seven"}, "'seven' is not the number of a pull request"),
        ):
            refused = await bob.send(page.form(f"{place}/run"), **filled)
            assert (refused.status, why in refused.words) == (400, True), refused.words
            kept = refused.form(f"{place}/run").fields
            assert {name: kept[name] for name in filled} == {name: [value] for name, value in filled.items()}
        shown = await bob.send(page.form(f"{place}/run"), issue=" 3 ")
        assert "Belongs to issue #3 of acme/tool" in shown.words
        assert "https://github.com/acme/tool/issues/3" in shown.read.links
        for path in ("/ui/runs", place):
            assert "issue #3" in (await bob.open(path)).words

    @pytest.mark.parametrize(
        ("filled", "why"),
        [
            ({"more": "no sign"}, "line 1, 'no sign', is not KEY=VALUE"),
            ({"more": "a=1\na=2"}, "the payload names 'a' twice"),
            ({"value-1": "1", "more": '{"ticket": "2"}'}, "the payload names 'ticket' twice"),
            ({"value-2": "1"}, "the value '1' has no key"),
            ({"more": '{"a": 1}'}, "payload.a must be a string"),
            ({"more": '{"a": '}, "is not one JSON value"),
            ({"more": "A=1"}, 'payload key "A" must be'),
            ({"more": "a=" + "x" * 40_000}, "at most 32,768 are allowed"),
        ],
    )
    async def test_a_payload_that_is_none_is_refused_and_stays(
        self, service: Service, ann: Surfer, filled: dict[str, str], why: str
    ) -> None:
        put(service)
        refused = await ann.send((await ann.open("/ui/pipelines/p")).form("/ui/pipelines/p/run"), **filled)
        assert (refused.status, why in refused.words) == (400, True), refused.words
        kept = refused.form("/ui/pipelines/p/run").fields
        assert {name: kept[name] for name in filled} == {name: [value] for name, value in filled.items()}


class TestRun:
    async def test_one_that_runs_tells_what_it_prints_and_is_cancelled(self, host: PipelineHost, bob: Surfer) -> None:
        await host.add(f"name: p\nrepo: acme/shop\nstages:\n  - {{id: wait, kind: shell, command: '{HOLD}'}}\n")
        run_id = await host.run(ticket=HOSTILE)
        place = f"/ui/runs/{run_id}"
        async with host.working():
            await host.until(lambda: host.there("held"))
            shown = await bob.open(place)
            await until(lambda: (runs.stage_so_far(host.service, run_id, "wait") or _NONE).output == "begun\n")
            shown = await bob.open(place)
            for words in ("◐ running", "What wait printed", "Output begun", "The file it was started with"):
                assert words in shown.words, words
            assert "<script>alert" not in shown.html
            assert "\\u202e" in shown.words
            cancelled = await bob.send(shown.form(f"{place}/cancel"))
            assert (cancelled.status, "The run is being ended" in cancelled.words) == (200, True)
            await host.until_state(run_id, "cancelled")
        over = await bob.open(place)
        assert "⊘ cancelled" in over.words
        assert "Cancel the run" not in over.words
        late = await bob.post(f"{place}/cancel", shown.form(f"{place}/cancel").fields)
        assert (late.status, f"the run {run_id} has ended (cancelled)" in late.words) == (409, True)

    async def test_each_attempt_of_a_stage_and_an_agent_s_tree_are_reached(
        self, host: PipelineHost, bob: Surfer
    ) -> None:
        flaky = "echo try $SERVICE_ATTEMPT; test $SERVICE_ATTEMPT = 2"
        await host.add(
            "name: p\nrepo: acme/shop\nstages:\n"
            f"  - {{id: flaky, kind: shell, command: '{flaky}', retry: 1}}\n"
            "  - {id: look, kind: agent, agent: dev, action: ask, prompt: Look, needs: [flaky]}\n"
        )
        run_id = await host.run()
        async with host.working():
            ended = await host.until_over(run_id)
        assert ended.state == "succeeded"
        shown = await bob.open(f"/ui/runs/{run_id}")
        assert f"/ui/trees/{ended.stages[1].job_id}" in shown.read.links
        assert "Output try 2" in shown.words
        first = next(link for link in shown.read.links if "attempt=1" in link)
        words = (await bob.open(first)).words
        assert "Output try 1" in words
        assert "the command ended with exit code 1" in words

    async def test_one_that_is_not_there_is_said(self, ann: Surfer) -> None:
        shown = await ann.open("/ui/runs/prun-000000000000")
        assert (shown.status, "no run prun-000000000000" in shown.words) == (404, True)

    async def test_a_run_of_a_pipeline_that_is_forgotten_is_still_shown(self, service: Service, ann: Surfer) -> None:
        run_id = ran(service, 7)
        for odd in ("9" * 5_000, "²"):
            assert (await ann.open(f"/ui/runs/{run_id}?stage=build&attempt={odd}")).status == 200
        words = (await ann.open(f"/ui/runs/{run_id}?stage=build&attempt=9")).words
        assert "p (forgotten since)" in words
        assert "What it prints is seen here when it has ended" in words

    async def test_all_runs_are_listed_and_narrowed(self, service: Service, ann: Surfer) -> None:
        assert "No runs yet" in (await ann.open("/ui/runs")).words
        good, bad = ran(service, 1), ran(service, 2, pipeline="q", state=RunState.FAILED, halt_stage="x", reason="odd")
        shown = await ann.open("/ui/runs")
        assert (runs_of(shown), "halted at x: odd" in shown.words) == ([bad, good], True)
        assert runs_of(await ann.open("/ui/runs?state=failed&pipeline=&repo=")) == [bad]
        assert runs_of(await ann.open("/ui/runs?pipeline=p")) == [good]
        assert "No run matches" in (await ann.open("/ui/runs?repo=acme/none")).words
        refused = await ann.open("/ui/runs?state=done")
        assert (refused.status, "'done' is not a state of a run" in refused.words) == (400, True)
        assert runs_of(await ann.open("/ui/runs?q=pipeline:p+state:succeeded+repo:acme/shop")) == [good]
        refused = await ann.open("/ui/runs?q=nightly")
        assert (refused.status, "such as pipeline:VALUE" in refused.words) == (400, True)


_NONE = runs.StageOutput("", "", StageState.PENDING, 0, "", "", "")
