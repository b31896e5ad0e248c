"""The page of a tree that is over begins with what finishes it (rulings O6, O7)."""

from pathlib import Path

import pytest

from bridge.operations.orders import trees
from bridge.operations.registry import agents
from bridge.operations.registry.agents import NewAgent
from bridge.operations.service import Service
from tests.activities.git.conftest import commit_file, run_git
from tests.bridge.grown import DOCS, FILE, TASK_BRANCH, Grown, grown
from tests.bridge.http.dashboard import planted
from tests.bridge.http.dashboard.surfer import Shown, Surfer
from tests.bridge.seeds import ROOT
from workflows.tree.state import TreeInput

pytestmark = pytest.mark.ruling("O6", "O7")

TREE = f"/ui/trees/{ROOT}"
FINISH = f"{TREE}/finish"


@pytest.fixture
def tree(service: Service, tmp_path: Path) -> Grown:
    return grown(service, tmp_path)


WORK, DROP = "finish", "drop"
DELETE = "Delete the 2 part branches and the task's branch"
"""The names of the forms of the work, and of the menu."""


async def press(ann: Surfer, button: str, form: str = WORK, **fields: str) -> Shown:
    return await ann.send((await ann.open(TREE)).form(FINISH, form_id=form), button, **fields)


async def test_the_tree_is_merged_into_the_branch_of_its_task(tree: Grown, ann: Surfer) -> None:
    html = (await ann.open(f"{TREE}/changes")).html
    assert html.index("Merge into the task's branch only") < html.index("Merge all"), "the first button"
    shown = await press(ann, "Merge into the task's branch only")
    assert run_git(tree.repo, "rev-parse", TASK_BRANCH) == tree.line
    assert not (tree.repo / FILE).exists()
    assert "Part docs is missing: it conflicts with code and fix in app.txt" in shown.words
    assert f"service job resolve {ROOT}" in shown.words
    assert f"git -C {tree.repo} merge {TASK_BRANCH}" in shown.words
    assert "Resolve it by hand" in shown.words
    assert f"merge --no-ff service/{DOCS}-docs" in shown.words


async def test_it_is_merged_into_the_checkout_and_dropped(tree: Grown, ann: Surfer) -> None:
    refused = await press(ann, "Merge 2 parts into main")
    assert "part docs is missing" in refused.words
    assert f"service job merge {ROOT} --into-mine --without docs" in refused.words
    assert not (tree.repo / FILE).exists()
    assert "main without docs" in (await ann.open(TREE)).words
    shown = await press(ann, "Merge 2 parts into main", without=DOCS)
    assert "Your branch main has the work now." in shown.words
    assert (tree.repo / FILE).read_text() == "code, mended\n"
    assert "Merge 2 parts into main" not in shown.words
    assert f"2 parts merged into main ({tree.line[:7]} )." in shown.words
    refused = await press(ann, "Drop all branches", DROP)
    assert "loses unmerged commits" in refused.words
    gone = await press(ann, "Drop all branches", DROP, force="yes")
    assert "4 branches are dropped" in gone.words
    assert run_git(tree.repo, "branch", "--list", "service/*") == ""
    assert FINISH not in (await ann.open(TREE)).html


async def test_a_checkout_with_changes_is_refused_with_what_to_type(tree: Grown, ann: Surfer) -> None:
    commit_file(tree.repo, "mine.txt", "1\n")
    (tree.repo / "mine.txt").write_text("2\n")
    shown = await press(ann, "Merge 2 parts into main")
    assert "has 1 uncommitted change; nothing was merged" in shown.words
    assert f"git -C {tree.repo} stash" in shown.words
    assert run_git(tree.repo, "branch", "--list", TASK_BRANCH) == ""


async def test_an_agent_resolves_what_conflicts(tree: Grown, ann: Surfer, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[TreeInput] = []

    async def start(_: Service, tree: TreeInput, host: str) -> str:
        begun.append(tree)
        return ROOT

    monkeypatch.setattr(trees, "start", start)
    new = NewAgent(
        "dev", "shell", command="true", capabilities="implement", autonomy="workspace-write", repos=("acme/shop",)
    )
    agents.add(tree.service, new)
    page = await ann.open(TREE)
    assert "Resolve it by hand" not in page.words, "there is no branch yet to do it on"
    shown = await ann.send(page.form(FINISH, form_id=WORK), "Let an agent resolve what conflicts")
    assert "dev brings the work together" in shown.words
    assert [each.leg for each in begun[0].line] == ["code", "docs", "fix"]


@pytest.mark.ruling("M3")
async def test_after_a_merge_the_page_agrees_with_itself(service: Service, ann: Surfer, tmp_path: Path) -> None:
    repo = planted.writers(service, tmp_path, {"a": ("a.py", "a\n"), "b": ("b.py", "b\n")})
    shown = await press(ann, "Merge 2 parts into main")
    head = run_git(repo, "rev-parse", TASK_BRANCH)
    assert "Your branch main has the work now." in shown.words
    for page in (TREE, f"{TREE}/changes"):
        shown = await ann.open(page)
        assert f"2 parts merged into main ({head[:7]} )." in shown.words
        assert '<span class="state merged">' in shown.html
        assert "eady to be merged" not in shown.words
        assert "Merge" not in [words for form in shown.read.forms for *_, words in form.buttons]
        assert [words for *_, words in shown.form(FINISH, form_id=WORK).buttons] == [DELETE]
    assert f"{TREE}/diff" in (await ann.open(TREE)).read.links
    shown = await press(ann, DELETE)
    assert run_git(repo, "branch", "--list", "service/*") == ""
    assert "2 parts merged into main" in shown.words, "also once its branches are gone"
    assert "Delete the" not in shown.words


async def test_what_is_merged_shows_what_it_brought_also_once_its_branches_are_gone(
    service: Service, ann: Surfer, tmp_path: Path
) -> None:
    planted.writers(service, tmp_path, {"a": ("a.py", "a\n"), "b": ("b.py", "b\n")})
    before = await ann.open(f"{TREE}/changes")
    assert before.html.count('type="checkbox" id="leg-') == 2
    assert 'data-copy="git switch service/' in before.html
    await press(ann, "Merge 2 parts into main")
    merged = await ann.open(f"{TREE}/changes")
    assert "2 parts merged into main" in merged.words
    assert 'type="checkbox" id="leg-' not in merged.html, "no action takes a choice of them"
    assert "Drop the chosen" not in merged.words
    await press(ann, DELETE)
    for shown in (merged, await ann.open(f"{TREE}/changes")):
        assert "no base" not in shown.words
        assert "2 files" in shown.words.split("What it changed")[1]
        assert shown.words.count("● merged service/") == 2
        assert shown.words.count("1 1 file") == 2, "commits and files"
    assert "git switch" not in shown.html, "its branches are gone"


@pytest.mark.ruling("M3")
async def test_every_view_shows_how_to_take_the_work_over(service: Service, ann: Surfer, tmp_path: Path) -> None:
    planted.writers(service, tmp_path, {"a": ("a.py", "a\n"), "b": ("b.py", "b\n")})
    makes = f'data-copy="service job merge {ROOT} &amp;&amp; git switch {TASK_BRANCH}"'
    for view in (TREE, f"{TREE}/timeline", f"{TREE}/changes", f"{TREE}/log"):
        shown = await ann.open(view)
        assert (f"Continue it yourself: {TASK_BRANCH}" in shown.words, makes in shown.html) == (True, True), view
        assert "● ready to merge" in shown.words
    ready = (await ann.open("/ui/")).words.partition("Ready to merge")[2]
    assert ready.startswith(" look acme/shop done "), "also where a person looks first"
    await press(ann, "Merge into the task's branch only")
    assert f'data-copy="git switch {TASK_BRANCH}"' in (await ann.open(TREE)).html
    await press(ann, "Merge 2 parts into main")
    assert "Continue it yourself" not in (await ann.open(TREE)).words, "the checkout has it"
