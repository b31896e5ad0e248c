"""A job's page: everything known about it, and its actions (ruling M3)."""

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from activities.runs import output_times
from activities.store import schema
from bridge.http.dashboard.pages.job import PROMPT_LETTERS
from bridge.operations.service import Service
from tests.activities.agents.recorded import STREAMS
from tests.activities.git.conftest import run_git
from tests.bridge import seeds
from tests.bridge.http.dashboard import planted
from tests.bridge.http.dashboard.planted import ROOT, leg
from tests.bridge.http.dashboard.surfer import Shown, Surfer
from tests.sealed import seal
from tests.secrets.redaction_table import TOKENS
from workflows.contract.models import Action
from workflows.model.states import JobState, TaskState, WaitsFor

pytestmark = pytest.mark.ruling("M3")

JOB = f"{ROOT}.1"
PAGE = f"/ui/jobs/{JOB}"

SEEN = {
    "captured": True,
    "complete": True,
    "touched_files": ["a.py", "extra.py"],
    "claims": [
        {"index": 0, "grade": "observed", "paths": [{"claimed": "a.py", "bound": "exact", "file": "a.py"}]},
        {"index": 1, "grade": "reported", "paths": [{"claimed": "b.py", "bound": "none", "file": None}]},
    ],
    "claimed_only": ["b.py"],
    "unclaimed_files": ["extra.py"],
}


def one(service: Service, **fields: Any) -> None:
    seeds.write(service, seeds.task(title="Limit it"), seeds.job(), leg(1, "look", **fields))


async def test_claims_stand_beside_what_was_seen(service: Service, ann: Surfer) -> None:
    one(service, summary="Two files.", decision="approved")
    content = {"changes_made": ["a.py: raised", "b.py: raised"], "findings": [{"severity": "high", "what": "a bug"}]}
    more = {"tests_run": ["pytest: 3 passed"], "needs": ["a key"]}
    seeds.payload(service, JOB, {"service_result": content | more, "result_observation": SEEN})
    words = (await ann.open(PAGE)).words
    assert "a.py: raised ● observed a.py is in the diff" in words
    assert "b.py: raised ? reported b.py: not in the diff" in words
    assert "Changed, but not reported extra.py" in words
    assert "The diff shows 1 of 2 reported changes; 1 reported file did not change; 1 more file changed." in words
    for word in ("severity: high, what: a bug", "pytest: 3 passed", "a key", "approved", "Two files.", "scout"):
        assert word in words, word


async def test_the_way_back_and_the_neighbours_are_links(service: Service, ann: Surfer) -> None:
    seeds.write(service, seeds.task(), seeds.job(), leg(1, "look"), leg(2, "deep", parent_job_id=JOB))
    links = (await ann.open(PAGE)).read.links
    assert {f"/ui/trees/{ROOT}", f"/ui/jobs/{ROOT}", f"/ui/jobs/{ROOT}.2"} <= set(links)


async def test_an_unknown_job_is_said_in_a_sentence(service: Service, ann: Surfer) -> None:
    missing, odd = await ann.open("/ui/jobs/job-ffffffffffff.7"), await ann.open("/ui/jobs/nothing")
    assert (missing.status, odd.status) == (404, 400)
    assert "no job job-ffffffffffff.7" in missing.words
    assert "'nothing' is not a job id" in odd.words


def plain(shown: Shown) -> str:
    return shown.words.replace("\N{MINUS SIGN}", "-")


async def test_the_files_of_the_diff_are_links_to_their_lines(service: Service, ann: Surfer, tmp_path: Path) -> None:
    planted.writers(service, tmp_path, {"a": ("limiter.py", "limit = 2 < 3\n")})
    shown = await ann.open(PAGE)
    assert "What it changed Diff 1 file, +1 -1 limiter.py +1 -1" in plain(shown)
    assert {f"{PAGE}/diff", f"{PAGE}/diff?file=1#file-1"} <= set(shown.read.links)


async def test_what_a_reader_changed_and_lost_is_shown(service: Service, ann: Surfer) -> None:
    one(service)
    diff = "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -0,0 +1 @@\n+lost\n"
    seeds.payload(service, JOB, {}, diagnostics={"discarded_diff": diff})
    words = plain(await ann.open(PAGE))
    assert "what was thrown away Diff 1 file, +1 -0 x.py +1" in words
    words = plain(await ann.open(f"{PAGE}/diff"))
    assert "1 file, +1 -0 thrown away, because it may not write" in words
    assert "1 lost" in words


def printing(service: Service, text: str, **fields: Any) -> Path:
    """Create a program's folder with this output."""
    folder = service.home.runs / f"{JOB}.1"
    folder.mkdir(parents=True)
    (folder / "stdout.log").write_text(text)
    here = {"host": service.settings.host, "run_dir": str(folder)}
    seeds.payload(service, JOB, {}, **(here | fields))
    return folder


async def test_what_a_running_agent_prints_is_seen_as_it_comes(service: Service, ann: Surfer) -> None:
    one(service, state=JobState.RUNNING, ended_at=None)
    folder = printing(service, "thinking\n<b>password=hunter2hunter2</b>\n")
    shown = await ann.open(PAGE)
    assert "thinking" in shown.words
    assert "<b>password" not in shown.html
    with (folder / "stdout.log").open("a") as file:
        file.write("further\n")
    assert "further" in (await ann.open(PAGE)).words


async def test_a_long_output_is_shown_by_its_end_and_earlier_parts_by_links(service: Service, ann: Surfer) -> None:
    one(service)
    printing(service, "first\n" + "a line of <words>\n" * 15_000 + "last\n")
    shown, pages = await ann.open(PAGE), 1
    assert "last Events" in shown.words
    while earlier := [link for link in shown.read.links if "&before=" in link]:
        assert len(shown.html.encode()) < 150_000
        shown, pages = await ann.open(earlier[0]), pages + 1
    assert "first a line" in shown.words
    assert pages < 12
    assert f"{PAGE}?attempt=1#conversation" in shown.read.links


async def test_a_conversation_has_what_was_said_and_each_call_with_its_result(service: Service, ann: Surfer) -> None:
    one(service, runtime="runtime_b")
    printing(service, (STREAMS / "claude" / "stream-json.stdout").read_text(), worktree="<REPO>")
    shown = await ann.open(PAGE)
    assert 'class="clock' not in shown.html, "a run of before has no times"
    output_times.note(service.home.runs / f"{JOB}.1" / "stdout.log")
    shown = await ann.open(PAGE)
    assert shown.html.count('class="clock') == 1, "once for all that came together"
    assert "Write hello.txt File created successfully" in shown.words
    assert (
        "Bash git status --short ?? hello.txt Result, as it was sent; it stands above in words ```json" in shown.words
    )
    assert "1 710 tokens in, 150 out (this run)" in shown.words


async def test_a_call_without_a_result_runs_until_the_attempt_ends(service: Service, ann: Surfer) -> None:
    one(service, runtime="runtime_c", state=JobState.RUNNING, ended_at=None)
    call = {"id": "c1", "function": {"name": "Bash", "arguments": '{"command": "ls"}'}}
    folder = printing(service, json.dumps({"role": "assistant", "tool_calls": [call]}) + "\n")
    assert "Bash ls runs" in (await ann.open(PAGE)).words
    with (folder / "stdout.log").open("a") as file:
        file.write('{"role":"tool","tool_call_id":"c1","content":"Command failed with exit code: 2."}\n')
    assert "Bash ls failed Command failed" in (await ann.open(PAGE)).words


async def test_each_attempt_has_its_conversation_and_its_prompt(service: Service, ann: Surfer) -> None:
    one(service, attempt=2)
    first = printing(service, "of the first\n")
    (first / "prompt").write_text("do it")
    second = first.with_name(f"{JOB}.2")
    second.mkdir()
    (second / "stdout.log").write_text("of the second\n")
    (second / "prompt").write_text("do it again")
    seeds.payload(service, JOB, {}, attempt=2, host=service.settings.host, run_dir=str(second))
    newest = await ann.open(PAGE)
    assert "of the second" in newest.words
    assert "do it again" in newest.words
    earlier = await ann.open(f"{PAGE}?attempt=1")
    assert "of the first" in earlier.words
    assert "The prompt of attempt 1 do it" in earlier.words
    assert "has no attempt 7" in (await ann.open(f"{PAGE}?attempt=7")).words
    assert (await ann.open(f"{PAGE}?attempt=x")).status == 400


@pytest.mark.ruling("A12")
async def test_the_raw_output_is_plain_text_without_secrets(service: Service, ann: Surfer) -> None:
    one(service)
    token = TOKENS["GitHub personal"]
    printing(service, f"<script>alert(1)</script>\n{token}\n" + "x" * 300_000 + "\nthe end")
    shown = await ann.open(PAGE)
    for link in (link for link in shown.read.links if "/raw?" in link):
        raw = await ann.open(link)
        assert raw.status == 200
        assert raw.headers["content-type"] == "text/plain; charset=utf-8"
        assert raw.headers["x-content-type-options"] == "nosniff"
        assert raw.html.endswith("the end")
        assert token not in raw.html
        assert raw.html.startswith("<script>" if "cursor" not in link else "xxx")
    assert (await ann.open(f"{PAGE}/raw?attempt=7")).status == 404


async def test_entries_that_grow_when_escaped_stay_within_the_page(service: Service, ann: Surfer) -> None:
    one(service, runtime="runtime_c")
    lines = "".join(json.dumps({"role": "assistant", "content": '\u202e"<' * 600}) + "\n" for _ in range(300))
    printing(service, lines)
    shown = await ann.open(PAGE)
    assert 30_000 < len(shown.html.encode()) < 150_000


@pytest.mark.ruling("P7.shown")
async def test_what_it_was_told_is_folded_escaped_and_without_secrets(service: Service, ann: Surfer) -> None:
    one(service)
    assert f"{JOB} never ran" in (await ann.open(PAGE)).words
    folder, token = printing(service, ""), TOKENS["GitHub personal"]
    (folder / "prompt").write_text(f"# Job\n<script>alert(1)</script> {token}\n{'x' * PROMPT_LETTERS}the end")
    page = await ann.open(PAGE)
    assert '<details id="prompt"><summary>The prompt of attempt 1</summary>' in page.html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page.html
    assert "<script>alert(1)" not in page.html
    assert token not in page.html
    assert "the end" not in page.html
    assert f"Only its beginning is shown. The whole: service job prompt {JOB}" in page.words


async def test_output_that_is_elsewhere_or_gone_is_said(service: Service, ann: Surfer) -> None:
    one(service)
    assert f"Conversation {JOB} never ran." in (await ann.open(PAGE)).words
    seeds.payload(service, JOB, {}, host="another")
    asked = f"attempt 1 ran on the host another, which other hosts cannot ask. ssh another service job log {JOB}"
    assert f"Conversation {asked}" in (await ann.open(PAGE)).words
    with service.store.begin() as connection:
        connection.execute(update(schema.attempts).values(host=service.settings.host, run_dir="/gone"))
    assert "the output of attempt 1 is not kept any more" in (await ann.open(PAGE)).words


async def test_faults_last_words_waits_and_events_are_told(service: Service, ann: Surfer) -> None:
    one(service, state=JobState.FAILED, reason="the result has a fault after one repair")
    diagnostics = {"faults": ["decision must be one of them"], "stderr": "Traceback\nboom"}
    seeds.payload(service, JOB, {}, diagnostics=diagnostics)
    seeds.write(service, seeds.event(1, JOB, message="leg look is queued"))
    words = (await ann.open(PAGE)).words
    for word in ("decision must be one of them", "boom", "leg look is queued", "the result has a fault"):
        assert word in words, word


async def test_what_agents_wrote_is_text(service: Service, ann: Surfer) -> None:
    hostile = "<script>alert(1)</script>\u202e\"'><img src=x>"
    one(service, agent=hostile, summary=hostile, reason=hostile, next=hostile, model=hostile, phase=hostile)
    lists = ("findings", "changes_made", "tests_run", "needs")
    content = {name: [hostile, {hostile: hostile}] for name in lists}
    printing(service, hostile, diagnostics={"stderr": hostile, "faults": [hostile], "discarded_diff": hostile})
    seeds.write(service, seeds.event(1, JOB, message=hostile))
    with service.store.begin() as connection:
        connection.execute(update(schema.attempts).values(payload={"service_result": content}))
    seal(service.store)
    shown = await ann.open(PAGE)
    assert shown.status == 200
    assert "alert(1)" in shown.words
    assert "<script>" not in shown.html
    assert "<img" not in shown.html
    assert "\u202e" not in shown.html


async def test_a_leg_is_merged_and_dropped_from_its_page(service: Service, ann: Surfer, tmp_path: Path) -> None:
    repo = planted.writers(service, tmp_path, {"a": ("a.py", "a\n")})
    shown = await ann.open(PAGE)
    refused = await ann.send(shown.form(f"{PAGE}/drop"))
    assert refused.status == 409
    assert f"service job drop {JOB} --force" in refused.words
    shown = await ann.send(shown.form(f"{PAGE}/merge"))
    assert "is merged into" in shown.words
    shown = await ann.send(shown.form(f"{PAGE}/drop"))
    assert f"git -C {repo} branch service/{JOB}" in shown.words
    assert not run_git(repo, "branch", "--list", "service/job*")
    assert f"{PAGE}/drop" not in {form.action for form in shown.read.forms}


async def test_a_retry_is_offered_where_one_can_be_taken(service: Service, ann: Surfer) -> None:
    one(service, state=JobState.FAILED)
    actions = {form.action for form in (await ann.open(PAGE)).read.forms}
    assert f"{PAGE}/retry" in actions
    seeds.write(service, seeds.task(state=TaskState.DONE, revision=2))
    assert f"{PAGE}/retry" not in {form.action for form in (await ann.open(PAGE)).read.forms}


async def test_a_worktree_that_is_gone_is_said(service: Service, ann: Surfer) -> None:
    one(service, state=JobState.RUNNING, ended_at=None, action=Action.IMPLEMENT)
    assert f"{JOB} is running and has no worktree here" in (await ann.open(PAGE)).words


async def test_every_attempt_is_told(service: Service, ann: Surfer) -> None:
    one(service, attempt=2)
    seeds.payload(service, JOB, {}, outcome={"state": "failed"})
    seeds.payload(service, JOB, {}, attempt=2, outcome={"state": "succeeded"})
    words = (await ann.open(PAGE)).words
    assert "Attempt 2; 1: failed" in words
    assert "; 2: succeeded" in words


@pytest.mark.parametrize("page", [PAGE, f"/ui/trees/{ROOT}"])
async def test_a_conflict_that_blocks_is_told_with_every_command_of_the_way_out(
    service: Service, ann: Surfer, tmp_path: Path, page: str
) -> None:
    changes = {"a": ("limiter.py", "limit = 2\n"), "b": ("limiter.py", "limit = 3\n")}
    planted.writers(service, tmp_path, changes, state=TaskState.BLOCKED, ended_at=None)
    clash = {"branch": f"service/{ROOT}.2", "against": [f"service/{JOB}"], "files": ["limiter.py"]}
    seeds.write(service, leg(1, "a", state=JobState.BLOCKED, waits_for=WaitsFor.RETRY, revision=9))
    with service.store.begin() as connection:
        row = schema.attempts.c.job_id == JOB
        connection.execute(update(schema.attempts).where(row).values(diagnostics={"conflict": clash}))
    seal(service.store)
    shown = await ann.open(page)
    assert "Merge conflict" in shown.words
    assert "in limiter.py." in shown.words
    assert "by hand" in shown.words
    assert f"service job retry {JOB}" in shown.words


@pytest.mark.ruling("N4")
async def test_a_result_that_no_host_sealed_is_not_shown(service: Service, ann: Surfer) -> None:
    one(service)
    printing(service, "done")
    with service.store.begin() as connection:
        connection.execute(update(schema.attempts).values(payload={"service_result": {"findings": ["forged"]}}))
    shown = await ann.open(PAGE)
    assert "forged" not in shown.words
    assert "was not sealed with a key of this service" in shown.words
