"""The pages of diffs: of a job, and of all work of a tree (ruling M3)."""

from pathlib import Path
from typing import Any

import pytest

from activities.store import tree_rows
from bridge.http.dashboard.parts import diff_view
from bridge.operations.jobs import jobs
from bridge.operations.orders import trees
from bridge.operations.registry import agents
from bridge.operations.registry.agents import NewAgent
from bridge.operations.service import Service
from tests.activities.git.conftest import commit_file, run_git
from tests.bridge import seeds
from tests.bridge.grown import CODE, FILE, Grown, grown
from tests.bridge.http.dashboard import planted
from tests.bridge.http.dashboard.planted import ROOT
from tests.bridge.http.dashboard.surfer import Sendable, Surfer
from workflows.model.states import JobState, TaskState
from workflows.tree.state import TreeInput

pytestmark = pytest.mark.ruling("M3")

JOB = f"{ROOT}.1"
PAGE = f"/ui/jobs/{JOB}/diff"


async def test_lines_have_numbers_signs_and_colours(service: Service, ann: Surfer, tmp_path: Path) -> None:
    planted.writers(service, tmp_path, {"a": ("limiter.py", 'limit = 2 < 3  # "two\n')})
    html, number = (await ann.open(PAGE)).html, "<span class=n>{}</span>".format
    cut = f'<td class="code cut">limit = {number(1)}</td>'
    add = f'<td class="code add">limit = {number(2)} &lt; {number(3)}  <span class=c># &#34;two</span></td>'
    old, new = (f'<td class="no"><button name="open" value="1{side}1">1</button>' for side in "on")
    assert f'<tr>{old}<td class="no">{cut}' in html
    assert f'<tr><td class="no">{new}{add}' in html
    html = (await ann.open(f"{PAGE}?view=split")).html
    assert f"<tr>{old}{cut}{new}{add}" in html


async def test_a_view_is_kept_by_every_link(service: Service, ann: Surfer, tmp_path: Path) -> None:
    planted.writers(service, tmp_path, {"a": ("big.txt", "a line\n" * 1000)})
    shown = await ann.open(f"{PAGE}?view=split")
    here = [link for link in shown.read.links if link.startswith(PAGE)]
    assert here == [PAGE, f"{PAGE}?view=split", f"{PAGE}?view=split&file=1&line=300#file-1"]


async def test_a_large_file_is_read_part_by_part(service: Service, ann: Surfer, tmp_path: Path) -> None:
    planted.writers(service, tmp_path, {"a": ("big.txt", "".join(f"line {n};\n" for n in range(1, 1001)))})
    shown = await ann.open(PAGE)
    seen = shown.words
    for _ in range(3):
        shown = await ann.open([link for link in shown.read.links if "line=" in link][-1])
        seen += shown.words
    assert "More lines" not in shown.words
    assert all(f" line {n};" in seen for n in range(1, 1001))


async def test_a_file_that_was_unfolded_stays_so_when_a_comment_is_opened(
    service: Service, ann: Surfer, tmp_path: Path
) -> None:
    repo = planted.writers(service, tmp_path, {"a": ("a.txt", "a line\n")})
    run_git(repo, "checkout", "-q", f"service/{JOB}")
    head = commit_file(repo, "b.txt", "another line\n" * 400)
    run_git(repo, "checkout", "-q", "main")
    seeds.write(service, jobs.get(service, JOB).model_copy(update={"head_sha": head, "revision": 9}))
    form = (await ann.open(PAGE)).form(PAGE)
    folded = await ann.post(PAGE, form.fields | {"open": ["1n1"]})
    assert "another line" not in folded.words
    kept = await ann.post(PAGE, form.fields | {"open": ["1n1"], "unfolded-2": [""]})
    assert "another line" in kept.words


async def test_no_diff_takes_the_page_down(service: Service, ann: Surfer, tmp_path: Path) -> None:
    """Thousands of files, and one of megabytes with a single endless line."""
    repo = planted.writers(service, tmp_path, {"a": ("endless.js", "x" * 3_000_000)})
    run_git(repo, "checkout", "-q", f"service/{JOB}")
    for number in range(2000):
        (repo / f"file-{number:04}.py").write_text(f"def f{number}():\n    return {number}\n" * 8)
    head = commit_file(repo, "large.txt", "a line of a large file\n" * 100_000)
    run_git(repo, "checkout", "-q", "main")
    row = jobs.get(service, JOB)
    seeds.write(service, row.model_copy(update={"head_sha": head, "revision": 9}))
    for query in ("", "?from=2001", "?file=1", "?file=2000&view=split", "?file=2002"):
        shown = await ann.open(f"{PAGE}{query}")
        assert shown.status == 200
        assert len(shown.html.encode()) < 150_000, query
    assert "2 002 files" in shown.words.replace("\u202f", " ")


async def test_all_work_of_a_tree_is_one_diff_without_what_conflicts(
    service: Service, ann: Surfer, tmp_path: Path
) -> None:
    grown(service, tmp_path)
    words = (await ann.open(f"/ui/trees/{ROOT}/diff")).words
    assert f"{FILE} +1" in words
    assert "code, mended" in words
    assert "Not shown, because it conflicts with the rest: docs" in words


async def test_hidden_characters_and_line_ends_are_shown(service: Service, ann: Surfer, tmp_path: Path) -> None:
    planted.writers(service, tmp_path, {"a": ("odd.py", "a = '\u202e\u200b'\nb = 1\r\nc = 2\n\td\n")})
    page = await ann.open(PAGE)
    assert "\\u202e\\u200b" in page.html
    assert diff_view.UNSEEN in page.words
    assert "b = <span class=n>1</span><span class=d>\\r</span>" in page.html
    assert "\td" in page.html


async def test_addresses_that_mean_nothing_show_the_page(service: Service, ann: Surfer, tmp_path: Path) -> None:
    planted.writers(service, tmp_path, {"a": ("limiter.py", "limit = 2\n")})
    for query in ("file=9", "file=x", "from=-1", "line=99", "file=1&line=9999", "view=other", "from=99"):
        shown = await ann.open(f"{PAGE}?{query}")
        assert (shown.status, "1 file" in shown.words) == (200, True), query
    assert (await ann.open("/ui/jobs/job-ffffffffffff.7/diff")).status == 404


CODE_PAGE = f"/ui/jobs/{CODE}/diff"
FIELD = f"c:n1:{FILE}"


@pytest.fixture
def tree(service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Grown:
    """Grow a tree whose legs' work can be commented on; a tree that is started only has its first rows."""

    async def start(service: Service, tree: TreeInput, host: str) -> str:
        root = tree.root_job_id
        seeds.write(service, seeds.task(root, title=tree.title), seeds.job(root, action=tree.assignment.action))
        tree_rows.begin(service.store, tree, host)
        return root

    monkeypatch.setattr(trees, "start", start)
    can: dict[str, Any] = {"capabilities": "implement", "autonomy": "workspace-write", "repos": ("acme/shop",)}
    made = grown(service, tmp_path)
    agents.add(service, NewAgent("dev", "shell", command="true", **can))
    return made


async def opened(ann: Surfer, page: str = CODE_PAGE) -> Sendable:
    """Open the comment on the first line."""
    form = (await ann.open(page)).form(CODE_PAGE)
    return (await ann.post(CODE_PAGE, form.fields | {"open": ["1n1"]})).form(CODE_PAGE)


@pytest.mark.ruling("O6", "M5")
async def test_comments_are_gathered_in_every_view_and_sent_at_once(ann: Surfer, tree: Grown) -> None:
    form = await opened(ann)
    form.fields |= {FIELD: ["Say <b>more</b>."], "text": ["Nearly."]}
    split = await ann.send(form, "Side by side")
    assert "1 comment , not sent yet" in split.words
    assert "&lt;b&gt;more" in split.html
    form = split.form(CODE_PAGE)
    assert (form.fields[FIELD], form.fields["text"]) == (["Say <b>more</b>."], ["Nearly."])
    sent = await ann.send(form, "Send to dev")
    assert "dev works on your comments. When it has succeeded, merge its job." in sent.words
    new = sent.address.rpartition("/trees/")[2].partition("?")[0]
    words = (await ann.open(f"/ui/jobs/{new}")).words
    assert "Comments it got" in words
    assert f"{FILE}:1: Say <b>more</b>." in words
    shown = await ann.open(CODE_PAGE)
    assert f"ann@desk, on the page sent 2 comments on its diff; {new} works on that" in shown.words
    assert f"/ui/jobs/{new}" in shown.read.links


@pytest.mark.ruling("M2")
async def test_comments_on_a_diff_that_has_changed_are_kept_and_not_sent(ann: Surfer, tree: Grown) -> None:
    form = await opened(ann)
    run_git(tree.repo, "checkout", "-q", f"service/{CODE}-code")
    head = commit_file(tree.repo, FILE, "other code\n")
    run_git(tree.repo, "checkout", "-q", "main")
    row = jobs.get(tree.service, CODE)
    seeds.write(tree.service, row.model_copy(update={"head_sha": head, "revision": 9}))
    tree.ends(CODE, head)
    form.fields[FIELD] = ["Why?"]
    refused = await ann.send(form, "Send to dev")
    assert refused.status == 409
    assert "has changed since it was read" in refused.words
    assert "The diff has changed since you read it." in refused.words
    again = refused.form(CODE_PAGE)
    assert (again.fields[FIELD], again.fields["head"]) == (["Why?"], [head])
    assert "dev works on your comments" in (await ann.send(again, "Send to dev")).words


@pytest.mark.ruling("M5")
async def test_an_address_opens_a_comment_and_a_button_discards_it(ann: Surfer, tree: Grown) -> None:
    shown = await ann.open(f"{CODE_PAGE}?comment={FILE}:1")
    form = shown.form(CODE_PAGE)
    assert "autofocus" in shown.html
    assert form.fields[FIELD] == [""]
    assert FIELD not in (await ann.send(form, "Discard")).form(CODE_PAGE).fields
    far = (await ann.open(f"{CODE_PAGE}?comment=gone.txt:old:7")).form(CODE_PAGE)
    far.fields["c:o7:gone.txt"] = ["Kept."]
    refused = await ann.send(far, "Send to dev")
    assert (refused.status, "has no file 'gone.txt'" in refused.words) == (400, True)
    assert refused.form(CODE_PAGE).fields["c:o7:gone.txt"] == ["Kept."]


@pytest.mark.ruling("O6")
async def test_a_comment_on_the_diff_of_a_tree_is_about_all_of_its_work(ann: Surfer, tree: Grown) -> None:
    page = f"/ui/trees/{ROOT}/diff"
    form = (await ann.open(f"{page}?comment={FILE}:1")).form(page)
    form.fields[FIELD] = ["Why?"]
    sent = await ann.send(form, "Send to dev")
    new = tree_rows.get(tree.service.store, sent.address.rpartition("/trees/")[2].partition("?")[0])
    assert new is not None
    assert [each.leg for each in new.start.line] == ["code", "docs", "fix"]


async def test_what_still_goes_on_takes_no_comments(ann: Surfer, tree: Grown) -> None:
    row = jobs.get(tree.service, CODE)
    seeds.write(tree.service, row.model_copy(update={"state": JobState.RUNNING, "revision": 9}))
    seeds.write(tree.service, seeds.task(revision=9, state=TaskState.OPEN))
    for page in (CODE_PAGE, f"/ui/trees/{ROOT}/diff"):
        shown = await ann.open(page)
        assert 'name="open"' not in shown.html, page
    assert "It can be commented on once it has ended." in shown.words
