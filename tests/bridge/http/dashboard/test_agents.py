"""Agents, runtimes, repositories and hosts on a page, and the doctor's findings (ruling M4)."""

import threading
import time
from collections.abc import Iterator

import pytest

from activities.store.registry import agent_rows, host_rows, repo_rows
from bridge.http.dashboard.pages import agents as agents_page
from bridge.http.dashboard.pages import doctor as doctor_page
from bridge.http.dashboard.parts.slow_answers import Background
from bridge.operations.health.findings import Finding, Level
from bridge.operations.health.runtimes import RuntimeStatus
from bridge.operations.service import Service
from tests.bridge import seeds
from tests.bridge.http.dashboard.surfer import Surfer
from tests.waiting import until
from workflows.contract.models import AutonomyPolicy
from workflows.model.states import JobState
from workflows.model.workers import Worker

pytestmark = pytest.mark.ruling("M4")
FOUND = [
    RuntimeStatus("runtime_a", "codex", works=True, says="logged in", path="/bin/codex", version="1.2.3"),
    RuntimeStatus("runtime_b", "claude", works=False, says="not found on the PATH", fix="npm install -g claude"),
]


@pytest.fixture
def let() -> Iterator[threading.Event]:
    """Yield an event that releases the checks."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture(autouse=True)
def looks(monkeypatch: pytest.MonkeyPatch, let: threading.Event) -> list[str]:
    """Replace the checks of programs by known findings, released by the test."""
    looked: list[str] = []

    def runtimes(_: Service) -> list[RuntimeStatus]:
        assert let.wait(60)
        looked.append("runtimes")
        return FOUND

    def findings(_: Service) -> list[Finding]:
        assert let.wait(60)
        looked.append("doctor")
        wrong = Finding("temporal", Level.WRONG, "no <b>answer</b>", "service daemon start")
        return [Finding("git", Level.OK, "2.40"), wrong, Finding("disk", Level.WARNING, "4 GiB free", "make room")]

    monkeypatch.setattr(agents_page, "RUNTIMES", Background(runtimes))
    monkeypatch.setattr(doctor_page, "FINDINGS", Background(findings))
    return looked


async def test_a_page_answers_before_a_slow_look_is_over(ann: Surfer, let: threading.Event, looks: list[str]) -> None:
    for path, words in (("/ui/agents", "1.2.3 /bin/codex"), ("/ui/doctor", "4 GiB free")):
        first = await ann.open(path)
        assert "being checked</span> <span" in first.html, "a state is never broken into lines: it must be short"
        assert words not in first.words
        assert looks == []
    let.set()
    await until(lambda: sorted(looks) == ["doctor", "runtimes"])
    for path, words in (("/ui/agents", "1.2.3 /bin/codex"), ("/ui/doctor", "4 GiB free")):
        seen = ""
        while words not in seen:
            seen = (await ann.open(path)).words
    assert len(looks) == 2, "what was seen is kept"


@pytest.mark.parametrize("path", ["/ui/agents", "/ui/doctor"])
async def test_check_now_has_it_looked_again(path: str, ann: Surfer, let: threading.Event, looks: list[str]) -> None:
    let.set()
    shown = await ann.open(path)
    while "Check now" not in shown.words:
        shown = await ann.open(path)
    assert len(looks) == 1
    assert (await ann.send(shown.form(f"{path}/check"))).status == 200
    await until(lambda: len(looks) == 2)


async def test_runtimes_say_whether_they_work_and_what_to_type(ann: Surfer, let: threading.Event) -> None:
    let.set()
    shown = await ann.open("/ui/agents")
    while "codex" not in shown.words:
        shown = await ann.open("/ui/agents")
    assert "codex ● works 1.2.3 /bin/codex logged in" in shown.words
    assert "claude ✕ does not work not found on the PATH To mend it" in shown.words
    assert "copy the command npm install -g claude" in shown.words


async def test_what_is_wrong_stands_first_with_its_fix(ann: Surfer, let: threading.Event) -> None:
    let.set()
    shown = await ann.open("/ui/doctor")
    while "Something is wrong" not in shown.words:
        shown = await ann.open("/ui/doctor")
    assert shown.words.index("service daemon start") < shown.words.index("make room") < shown.words.index("2.40")
    assert "<b>answer" not in shown.html


async def test_agents_are_shown_as_they_are_registered(service: Service, ann: Surfer) -> None:
    seeds.repo(service)
    worker = Worker(
        name="builder",
        runtime="runtime_a",
        model="m-1",
        effort="high",
        role='"><script>alert(1)</script>',
        capabilities=("ask", "implement"),
        autonomy_policy=AutonomyPolicy.WORKSPACE_WRITE,
    )
    agent_rows.add(service.store, worker, ("acme/shop",))
    agent_rows.add(service.store, Worker(name="idle", runtime="shell", command=("cat",)), ())
    seeds.write(service, seeds.job(agent="builder"), seeds.event(1, kind="result_repaired", at=time.time()))
    shown = await ann.open("/ui/agents")
    assert "It plans and writes changes , on acme/shop. May write in its own worktree." in shown.words
    assert "Model: m-1 high" in shown.words
    assert "In 30 days: 1 job, $0.00, 1 result repaired" in shown.words
    assert "runtime_a" not in shown.words
    assert "service agent allow idle OWNER/NAME" in shown.words
    assert "acme/shop /srv/checkouts/shop here" in shown.words
    assert "<script>alert" not in shown.html


async def test_an_agents_last_ten_outcomes_are_shapes_with_words(service: Service, ann: Surfer) -> None:
    seeds.repo(service)
    agent_rows.add(service.store, Worker(name="builder", runtime="runtime_a", capabilities=("implement",)), ())
    begun = time.time() - 60
    states = [JobState.FAILED, *[JobState.SUCCEEDED] * 9, JobState.CANCELLED, JobState.RUNNING]
    rows = [
        seeds.job(
            f"{seeds.ROOT}.{number}",
            agent="builder",
            delegation_id=f"part-{number}",
            state=state,
            queued_at=begun,
            ended_at=begun + number if state.has_ended else None,
        )
        for number, state in enumerate(states, 1)
    ]
    strange = {"agent": "builder", "state": JobState.FAILED, "queued_at": begun, "ended_at": begun + 50}
    old = strange | {"queued_at": begun - 40 * 86_400, "ended_at": begun - 39 * 86_400}
    others = (seeds.job(f"{seeds.ROOT}.20", ephemeral=True, **strange), seeds.job(f"{seeds.ROOT}.21", **old))
    seeds.write(service, seeds.task(), *rows, *others)
    shown = await ann.open("/ui/agents")
    links = [link for link in shown.read.links if link.startswith("/ui/jobs/")]
    assert links == [f"/ui/jobs/{seeds.ROOT}.{number}" for number in range(11, 1, -1)]
    assert 'title="part-11: cancelled"' in shown.html
    assert "⊘ part-11: cancelled ● part-10: succeeded" in shown.words
    assert "9 of its last 10 jobs succeeded" in shown.words


async def test_a_host_that_is_not_there_says_what_to_type(service: Service, ann: Surfer) -> None:
    host_rows.see(service.store, "web-1", slots=8, started_at=1.0)
    host_rows.see(service.store, "web-2", slots=4, started_at=time.time(), labels=("arm64", "gpu"), taken=3)
    host_rows.stop(service.store, "web-1", started_at=1.0)
    words = (await ann.open("/ui/agents")).words
    assert "web-1 ✕ stopped To mend it, copy the command on web-1: service daemon start" in words
    assert "web-2 ● works" in words
    assert "arm64, gpu 3 of 4" in words


async def test_a_repository_of_all_hosts_shows_its_remote(service: Service, ann: Surfer) -> None:
    repo_rows.put(
        service.store,
        "acme/far",
        "",
        "",
        remote=repo_rows.Remote("ssh://git@example.org/far.git", "main", "refs/service/"),
    )
    assert "acme/far ssh://git@example.org/far.git any" in (await ann.open("/ui/agents")).words


async def test_a_service_without_anything_says_how_to_begin(ann: Surfer) -> None:
    words = (await ann.open("/ui/agents")).words
    for command in ("service agent add", "service repo add", "service daemon start"):
        assert command in words
