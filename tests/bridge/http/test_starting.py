"""Starting work over HTTP: asks, their gates, and idempotency keys (rulings J7, J9)."""

import asyncio
import json
from collections import Counter
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import text
from temporalio.client import Client

from activities.store import idempotency_rows, job_rows, tree_rows
from bridge.machine import tokens_file
from bridge.operations.orders import new_jobs, trees
from bridge.operations.service import Service
from tests.activities.git.conftest import commit_file, make_repository, run_git
from tests.activities.git.hub import clone, propose
from tests.bridge import seeds
from tests.bridge.http.conftest import caller, scout
from tests.secrets.redaction_table import TOKENS
from workflows.model import ids
from workflows.temporal import search

ASK = "/v1/agents/scout/ask"
BODY: dict[str, Any] = {"message": "Which module limits the rate?", "repo": "acme/shop"}


def started(service: Service) -> list[str]:
    return [job.job_id for job in job_rows.find(service.store, job_rows.JobFilter(limit=1000))]


async def workflow(service: Service, job_id: str) -> dict[str, Any]:
    """Return the input of a tree's workflow."""
    connected = await Client.connect(service.settings.temporal.address)
    history = await connected.get_workflow_handle(job_id).fetch_history()
    begun = history.events[0].workflow_execution_started_event_attributes
    payload: dict[str, Any] = json.loads(begun.input.payloads[0].data)["input"]
    return payload


@pytest.mark.ruling("J7")
class TestAsk:
    async def test_it_starts_a_job(self, with_temporal: Service) -> None:
        async with caller(with_temporal) as client:
            answer = await client.post(ASK, json=BODY | {"model": "m-1", "effort": "high"})
            assert answer.status_code == 200, answer.text
            assert set(answer.json()) == {"job_id"}
            job_id = answer.json()["job_id"]
            job = (await client.get(f"/v1/jobs/{job_id}")).json()
        assert (job["action"], job["agent"], job["state"], job["model"]) == ("ask", "scout", "queued", "m-1")
        assert BODY["message"] not in json.dumps(job)
        assert json.loads(with_temporal.home.audit.read_text().splitlines()[0])["created"] == [job_id]

    @pytest.mark.parametrize(
        ("agent", "change", "status", "why"),
        [
            ("nobody", {}, 404, "no agent nobody; known: mason, scout"),
            ("scout", {"repo": "acme/other"}, 404, "no repository acme/other"),
            ("mason", {}, 409, "mason is not allowed on acme/shop"),
            ("scout", {"message": "  "}, 400, "the message is empty"),
            ("scout", {"message": ""}, 400, "message must have at"),
            ("scout", {"message": None}, 400, "message must be"),
            ("scout", {"runtime": "gemini"}, 400, "'gemini' is not a runtime for scout"),
            ("scout", {"runtime": "codex"}, 409, "runtime_a is not configured"),
            ("scout", {"runtime": "runtime_a"}, 409, "runtime_a is not configured"),
            ("scout", {"model": ""}, 400, "model must have at"),
            ("scout", {"timeout": "90"}, 400, "the timeout '90' needs a unit"),
            ("scout", {"timeout": "0s"}, 400, "the timeout '0s' must be positive"),
            ("scout", {"budget": 0}, 400, "budget must be"),
        ],
    )
    async def test_its_gates_are_those_of_the_command_line(
        self, service: Service, agent: str, change: dict[str, Any], status: int, why: str
    ) -> None:
        from activities.store.registry import agent_rows
        from workflows.model.workers import Worker

        scout(service)
        agent_rows.add(
            service.store, Worker(name="mason", runtime="shell", command=("cat",), capabilities=("ask",)), ()
        )
        async with caller(service) as client:
            answer = await client.post(f"/v1/agents/{agent}/ask", json=BODY | change)
        assert (answer.status_code, why in answer.json()["error"]) == (status, True), answer.text
        assert started(service) == []

    @pytest.mark.ruling("N5")
    async def test_a_token_that_may_only_ask_starts_a_tree_that_only_reads(self, with_temporal: Service) -> None:
        async with caller(with_temporal) as client:
            for scope, read_only in (("ask", True), ("act", False), (None, False)):
                token = scope and tokens_file.add(with_temporal.home, f"ci-{scope}", scope)
                headers = {"Authorization": f"Bearer {token}"} if token else {}
                job_id = (await client.post(ASK, json=BODY, headers=headers)).json()["job_id"]
                assert (await workflow(with_temporal, job_id)).get("read_only", False) is read_only, scope

    @pytest.mark.ruling("A10")
    async def test_a_timeout_is_its_root_s(self, with_temporal: Service) -> None:
        async with caller(with_temporal) as client:
            for body, seconds in (({"timeout": "1h30m"}, 5400.0), ({}, None)):
                job_id = (await client.post(ASK, json=BODY | body)).json()["job_id"]
                assert (await workflow(with_temporal, job_id))["assignment"].get("timeout_seconds") == seconds

    async def test_another_runtime_takes_neither_command_nor_model_of_the_agent(self, with_temporal: Service) -> None:
        config = with_temporal.home.config
        config.write_text(config.read_text() + '[runtimes.runtime_a]\nadapter = "script"\ncommand = ["cat"]\n')
        again = Service(with_temporal.home)
        async with caller(again) as client:
            job_id = (await client.post(ASK, json=BODY | {"runtime": "runtime_a"})).json()["job_id"]
        worker = (await workflow(again, job_id))["assignment"]["worker"]
        assert (worker["runtime"], worker["command"], worker["model"]) == ("runtime_a", [], None)

    @pytest.mark.ruling("spec:delegation.model", "spec:delegation.effort")
    @pytest.mark.parametrize(
        ("body", "means"),
        [
            ({"model": "own", "effort": "high"}, ("own", "high")),
            ({}, ("agents", "medium")),
            ({"runtime": "runtime_a"}, ("usual", "low")),
        ],
    )
    async def test_its_job_runs_with_its_own_model_the_agents_or_the_runtimes(
        self, with_temporal: Service, body: dict[str, str], means: tuple[str, str]
    ) -> None:
        from activities.store.registry import agent_rows
        from workflows.model.workers import Worker

        config = with_temporal.home.config
        runtime = '[runtimes.runtime_a]\nadapter = "script"\ncommand = ["cat"]\n'
        config.write_text(f'{config.read_text()}{runtime}default_model = "usual"\ndefault_effort = "low"\n')
        thinker = Worker(
            name="thinker", runtime="shell", command=("cat",), capabilities=("ask",), model="agents", effort="medium"
        )
        agent_rows.add(with_temporal.store, thinker, ("acme/shop",))
        async with caller(Service(with_temporal.home)) as client:
            job_id = (await client.post("/v1/agents/thinker/ask", json=BODY | body)).json()["job_id"]
            job = (await client.get(f"/v1/jobs/{job_id}")).json()
        assert (job["model"], job["effort"]) == means

    async def test_without_temporal_nothing_is_recorded_and_reads_still_answer(
        self, service: Service, temporal: str
    ) -> None:
        scout(service)
        seeds.write(service, seeds.task(), seeds.job())
        async with caller(service) as client:
            refused = await client.post(ASK, json=BODY, headers={"Idempotency-Key": "k"})
            assert (refused.status_code, refused.json()["code"]) == (503, "unreachable")
            assert (await client.get(f"/v1/jobs/{seeds.ROOT}")).status_code == 200
            assert started(service) == [seeds.ROOT]
            host, _, port = temporal.partition(":")
            service.home.daemon_state.write_text(json.dumps({"temporal_address": f"{host}:{port}"}))
            settings = service.settings.model_copy(
                update={"temporal": service.settings.temporal.model_copy(update={"namespace": "default"})}
            )
            vars(service)["_loaded"] = replace(vars(service)["_loaded"], settings=settings)
            again = await client.post(ASK, json=BODY, headers={"Idempotency-Key": "k"})
            assert again.status_code == 200, "it recovers without a restart"


@pytest.mark.ruling("J7", "J9")
class TestOtherStarts:
    @pytest.mark.parametrize("action", ["review", "implement"])
    async def test_a_review_and_an_implementation_start_once_for_a_key(
        self, with_temporal: Service, action: str
    ) -> None:
        from activities.store.registry import agent_rows
        from workflows.contract.models import AutonomyPolicy
        from workflows.model.workers import Worker

        capable = Worker(name="mason", runtime="shell", command=("cat",), capabilities=("review", "implement"))
        capable = capable.model_copy(update={"autonomy_policy": AutonomyPolicy.WORKSPACE_WRITE})
        agent_rows.add(with_temporal.store, capable, ("acme/shop",))
        async with caller(with_temporal) as client:
            refused = await client.post(f"/v1/agents/scout/{action}", json=BODY)
            answers = [
                await client.post(f"/v1/agents/mason/{action}", json=BODY, headers={"Idempotency-Key": "k"})
                for _ in range(2)
            ]
            assert [answer.status_code for answer in answers] == [200, 200], answers[0].text
            assert answers[0].json() == answers[1].json()
            job = (await client.get(f"/v1/jobs/{answers[0].json()['job_id']}")).json()
        assert (refused.status_code, refused.json()["error"].partition(":")[0]) == (409, "scout only plans")
        assert (job["action"], job["agent"]) == (action, "mason")
        assert started(with_temporal) == [job["job_id"]]

    @pytest.fixture
    def with_runtime(self, with_temporal: Service) -> Service:
        config = with_temporal.home.config
        config.write_text(config.read_text() + '[runtimes.runtime_a]\nadapter = "script"\ncommand = ["cat"]\n')
        return Service(with_temporal.home)

    async def test_a_recipe_starts_once_for_a_key_and_tells_its_caveat(self, with_runtime: Service) -> None:
        body = {"recipe": "verifier", "goal": "Make it faster", "repo": "acme/shop", "runtimes": ["runtime_a"]}
        async with caller(with_runtime) as client:
            answers = [
                await client.post("/v1/orchestrate", json=body, headers={"Idempotency-Key": "k"}) for _ in range(2)
            ]
            assert [answer.status_code for answer in answers] == [200, 200], answers[0].text
        assert answers[0].json() == answers[1].json()
        assert "not independent" in answers[0].json()["caveat"]
        assert started(with_runtime) == [answers[0].json()["job_id"]]

    async def test_a_recipe_that_was_started_under_an_id_is_found_again(self, with_runtime: Service) -> None:
        """A call that died before its answer is repeated; no second tree starts."""
        from workflows.policy.recipes import Recipe

        new, root = new_jobs.NewRecipe(Recipe.VERIFIER, "Make it faster", "acme/shop"), trees.new_root_id()
        first = await new_jobs.orchestrate(with_runtime, new, root=root)
        assert await new_jobs.orchestrate(with_runtime, replace(new, repo="acme/none"), root=root) == first
        assert started(with_runtime) == [root]

    @pytest.mark.parametrize(
        ("change", "status", "why"),
        [
            ({"recipe": "cake"}, 400, "recipe must be 'review-panel', 'decompose-and-verify' or 'verifier'"),
            ({"repo": None}, 400, "repo must be"),
            ({"repo": "acme/none"}, 404, "no repository acme/none"),
            ({"goal": " "}, 400, "the message is empty"),
            ({"legs": 7, "recipe": "review-panel"}, 400, "this recipe has 1 to 6 legs, not 7"),
            ({"legs": 2}, 400, "the recipe verifier has one producer: leave `legs` out"),
            ({"runtimes": ["runtime_b"]}, 400, "runtime_b is not configured; configured: runtime_a"),
        ],
    )
    async def test_a_recipe_that_cannot_be_is_refused(
        self, with_runtime: Service, change: dict[str, Any], status: int, why: str
    ) -> None:
        body = {"recipe": "verifier", "goal": "Make it faster", "repo": "acme/shop"} | change
        async with caller(with_runtime) as client:
            answer = await client.post("/v1/orchestrate", json=body)
        assert (answer.status_code, why in answer.json()["error"]) == (status, True), answer.text
        assert started(with_runtime) == []


@pytest.mark.ruling("J9")
class TestIdempotency:
    async def test_the_same_key_with_the_same_body_is_answered_the_same_and_starts_once(
        self, with_temporal: Service
    ) -> None:
        async with caller(with_temporal) as client:
            key = {"Idempotency-Key": "order-17"}
            first = await client.post(ASK, json=BODY, headers=key)
            turned = json.dumps(dict(reversed(BODY.items())), indent=3)
            second = await client.post(ASK, content=turned, headers=key | {"Content-Type": "application/json"})
            assert first.json() == second.json()
            other = await client.post(ASK, json=BODY | {"message": "Another"}, headers=key)
            assert (other.status_code, other.json()["code"]) == (409, "idempotency_key_reused")
            elsewhere = await client.post("/v1/agents/nobody/ask", json=BODY, headers=key)
            assert elsewhere.status_code == 409, "the same words to somebody else are another call"
            assert (await client.post(ASK, json=BODY)).json() != first.json()
        assert len(started(with_temporal)) == 2

    @pytest.mark.ruling("N5")
    async def test_a_key_belongs_to_the_token_that_used_it(self, with_temporal: Service) -> None:
        """Another token's same key neither finds nor blocks the first one's."""
        tokens = [tokens_file.add(with_temporal.home, name, "ask") for name in ("ci", "web")]
        key = {"Idempotency-Key": "nightly"}
        sent = [key | {"Authorization": f"Bearer {token}"} for token in tokens]
        async with caller(with_temporal) as client:
            own = (await client.post(ASK, json=BODY, headers=key)).json()["job_id"]
            ci, web = [(await client.post(ASK, json=BODY, headers=each)).json()["job_id"] for each in sent]
            other = await client.post(ASK, json=BODY | {"message": "Another"}, headers=sent[1])
            assert (other.status_code, other.json()["code"]) == (409, "idempotency_key_reused"), "its own is"
            again = (await client.post(ASK, json=BODY, headers=sent[0])).json()["job_id"]
        assert (len({own, ci, web}), again) == (3, ci)

    async def test_many_at_once_start_one(self, with_temporal: Service) -> None:
        async with caller(with_temporal) as client:
            key = {"Idempotency-Key": "at-once"}
            answers = await asyncio.gather(*(client.post(ASK, json=BODY, headers=key) for _ in range(20)))
        assert Counter(answer.status_code for answer in answers) == {200: 20}
        assert len({answer.json()["job_id"] for answer in answers}) == 1
        assert len(started(with_temporal)) == 1

    @pytest.mark.parametrize("stage", ["reserved", "started", "recorded"])
    async def test_a_call_that_died_at_any_moment_is_finished_by_the_repeated_one(
        self, with_temporal: Service, stage: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The call is killed between two lasting effects, and repeated."""
        moments = {
            "reserved": (trees, "client_of"),
            "started": (tree_rows, "begin"),
            "recorded": (idempotency_rows, "settle"),
        }

        class KilledError(BaseException):
            """An exception that nothing catches, like a SIGKILL."""

        def die(*_: object) -> None:
            raise KilledError

        words = "the same words"
        order = new_jobs.NewJob(agent="scout", action="ask", **BODY)

        async def act(root: str | None) -> dict[str, Any]:
            return {"job_id": await new_jobs.start(with_temporal, order, root)}

        from bridge.operations.idempotency import once

        with monkeypatch.context() as broken:
            broken.setattr(*moments[stage], die)
            with pytest.raises(KilledError):
                await once(with_temporal, "k", words, trees.new_root_id, act)
        reserved = idempotency_rows.reserve(with_temporal.store, "k", "other", "other").subject
        assert await once(with_temporal, "k", words, trees.new_root_id, act) == {"job_id": reserved}
        assert started(with_temporal) == [reserved]
        assert (await workflow(with_temporal, reserved))["root_job_id"] == reserved

    async def test_a_call_that_was_refused_may_be_put_right_under_its_key(self, with_temporal: Service) -> None:
        async with caller(with_temporal) as client:
            key = {"Idempotency-Key": "fixed"}
            assert (await client.post(ASK, json=BODY | {"repo": "acme/none"}, headers=key)).status_code == 404
            assert (await client.post(ASK, json=BODY, headers=key)).status_code == 200

    @pytest.mark.parametrize("key", ["", "a b", "x" * 201, "é"])
    async def test_a_key_that_is_none_is_refused(self, service: Service, key: str) -> None:
        scout(service)
        async with caller(service) as client:
            answer = await client.post(ASK, json=BODY, headers=[(b"Idempotency-Key", key.encode("latin-1"))])
        assert answer.status_code == 400

    @pytest.mark.ruling("N7")
    async def test_a_key_is_stored_as_its_digest(self, with_temporal: Service) -> None:
        """Two keys that look like tokens stay distinct."""
        keys = [TOKENS["GitHub personal"], TOKENS["GitHub personal"][::-1], "order-17"]
        async with caller(with_temporal) as client:
            for key in keys:
                answer = await client.post(ASK, json=BODY, headers={"Idempotency-Key": key})
                assert answer.status_code == 200
        with with_temporal.store.connect() as connection:
            stored = connection.execute(text("SELECT key FROM idempotency")).scalars().all()
        assert sorted(stored) == sorted(sha256(key.encode()).hexdigest() for key in keys)

    async def test_a_key_is_forgotten_after_a_week(self, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
        idempotency_rows.reserve(service.store, "k", "d", "first")
        assert idempotency_rows.reserve(service.store, "k", "d", "second").subject == "first"
        monkeypatch.setattr(idempotency_rows, "KEPT_SECONDS", -1.0)
        assert idempotency_rows.reserve(service.store, "k", "d", "second").subject == "second"


@pytest.mark.ruling("J9")
class TestOrders:
    @pytest.mark.parametrize(
        ("path", "body", "status"),
        [
            ("resume", {"verb": "answer", "text": "x"}, 404),
            ("resume", {}, 400),
            ("resume", {"verb": "answer", "round": 0}, 400),
            ("resume", {"verb": "answer", "round": True}, 400),
            ("kill", {}, 404),
            ("kill", {"now": 1}, 400),
            ("dismiss", {}, 404),
            ("retry", {}, 404),
            ("merge", {}, 404),
            ("merge", {"then": ["job"]}, 404),
            ("merge", {"anyway": 1}, 400),
            ("drop", {"force": True}, 404),
            ("drop", {"now": True}, 400),
        ],
    )
    async def test_a_job_that_is_not_there_takes_none(
        self, call: httpx.AsyncClient, path: str, body: dict[str, Any], status: int
    ) -> None:
        assert (await call.post(f"/v1/jobs/{seeds.ROOT}/{path}", json=body)).status_code == status

    async def test_a_tree_is_killed_once_however_often_it_is_asked_for(self, with_temporal: Service) -> None:
        async with caller(with_temporal) as client:
            job_id = (await client.post(ASK, json=BODY)).json()["job_id"]
            answers = [await client.post(f"/v1/jobs/{job_id}/kill", json={"now": True}) for _ in range(2)]
        ends = {"root_job_id": job_id, "over": False, "unmerged_branches": []}
        assert [(each.status_code, each.json()) for each in answers] == [(200, ends)] * 2


@pytest.mark.ruling("L1")
class TestWhatItBelongsTo:
    @pytest.fixture
    def hub(self, with_temporal: Service, tmp_path: Path) -> Path:
        """Create the repository with acme/shop's pull requests."""
        made = make_repository(tmp_path / "hub" / "shop")
        checkout = clone(made, tmp_path / "checkout")
        seeds.repo(with_temporal, str(checkout), with_temporal.settings.host, "acme/web")
        return made

    async def test_a_job_on_a_pull_request(self, with_temporal: Service, hub: Path) -> None:
        head = propose(hub, 7, "a change")
        async with caller(with_temporal) as client:
            answer = await client.post(ASK, json=BODY | {"pull_request": 7})
            assert answer.status_code == 200, answer.text
            job_id = answer.json()["job_id"]
            shown = (await client.get(f"/v1/jobs/{job_id}")).json()
            listed = (await client.get("/v1/jobs?pull_request=7")).json()["jobs"]
            others = (await client.get("/v1/jobs?issue=7")).json()["jobs"]
        assert (shown["pull_request"], shown["issue"]) == (7, None)
        assert ([job["job_id"] for job in listed], others) == ([job_id], [])
        asked = (await workflow(with_temporal, job_id))["assignment"]
        assert (asked["pull_request"], asked["github"], asked["base"]) == (7, "acme/web", head)
        connected = await Client.connect(with_temporal.settings.temporal.address)
        described = await connected.get_workflow_handle(job_id).describe()
        assert described.typed_search_attributes.get(search.PULL_REQUEST) == 7
        assert "https://github.com/acme/web/pull/7" in (await described.static_details() or "")

    @pytest.mark.parametrize(
        ("change", "status", "why"),
        [
            ({"pull_request": 8}, 404, "there is no pull request #8"),
            ({"pull_request": 7, "issue": 3}, 400, "not to both"),
            ({"pull_request": 0}, 400, "pull_request must be"),
            ({"issue": 2**31}, 400, "issue must be"),
            ({"issue": "3"}, 400, "issue must be"),
            pytest.param({"base": "nowhere"}, 404, "there is no commit nowhere", marks=pytest.mark.ruling("O1")),
            pytest.param({"base": "-x"}, 404, "there is no commit -x", marks=pytest.mark.ruling("O1")),
            pytest.param({"base": "a\0b"}, 400, "holds U+0000", marks=pytest.mark.ruling("O1")),
            pytest.param({"base": "HEAD^{tree}"}, 409, "is a tree in", marks=pytest.mark.ruling("O1")),
            pytest.param({"base": ""}, 400, "base must have at", marks=pytest.mark.ruling("O1")),
            pytest.param({"base": "x" * 251}, 400, "base must have at", marks=pytest.mark.ruling("O1")),
        ],
    )
    async def test_what_is_refused_starts_nothing_and_names_no_path(
        self, with_temporal: Service, hub: Path, tmp_path: Path, change: dict[str, Any], status: int, why: str
    ) -> None:
        async with caller(with_temporal) as client:
            answer = await client.post(ASK, json=BODY | change)
        assert (answer.status_code, why in answer.json()["error"]) == (status, True), answer.text
        assert str(tmp_path / "checkout") not in answer.text
        assert started(with_temporal) == []

    @pytest.mark.ruling("O1")
    async def test_a_job_and_a_run_from_a_commit_that_is_named(
        self, with_temporal: Service, hub: Path, tmp_path: Path
    ) -> None:
        checkout = tmp_path / "checkout"
        first = run_git(checkout, "rev-parse", "HEAD")
        commit_file(checkout, "more.txt", "more\n")
        path = seeds.register(with_temporal)
        async with caller(with_temporal) as client:
            answer = await client.post(ASK, json=BODY | {"base": "HEAD~1"})
            run = await client.post(path, json={"base": "HEAD~1"})
            refused = await client.post(path, json={"base": "nowhere"})
        assert (answer.status_code, run.status_code, refused.status_code) == (200, 200, 404), answer.text + run.text
        assert (await workflow(with_temporal, answer.json()["job_id"]))["assignment"]["base"] == first
        connected = await Client.connect(with_temporal.settings.temporal.address)
        handle = connected.get_workflow_handle(ids.workflow_id("nightly"))
        begun = (await handle.fetch_history()).events[0].workflow_execution_started_event_attributes
        assert f'"base":"{first}"' in begun.input.payloads[0].data.decode().replace(": ", ":")
        await handle.terminate()

    async def test_a_repository_that_is_not_on_github(self, with_temporal: Service) -> None:
        async with caller(with_temporal) as client:
            answer = await client.post(ASK, json=BODY | {"issue": 3})
        assert answer.status_code == 409
        assert "service repo add acme/shop [path] --github OWNER/NAME" in answer.json()["error"]

    async def test_a_run_on_an_issue(self, with_temporal: Service, hub: Path) -> None:
        path = seeds.register(with_temporal)
        async with caller(with_temporal) as client:
            answer = await client.post(path, json={"payload": {}, "issue": 3})
            refused = await client.post(path, json={"issue": 3, "pull_request": 3})
        assert (answer.status_code, refused.status_code) == (200, 400), answer.text
        connected = await Client.connect(with_temporal.settings.temporal.address)
        handle = connected.get_workflow_handle(ids.workflow_id("nightly"))
        assert (await handle.describe()).typed_search_attributes.get(search.ISSUE) == 3
        await handle.terminate()
