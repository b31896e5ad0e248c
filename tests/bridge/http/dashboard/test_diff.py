"""The pages of diffs: of a job, and of all work of a tree (ruling M3)."""

from pathlib import Path

import pytest

from bridge.http.dashboard.parts import diff_view
from bridge.operations.jobs import jobs
from bridge.operations.service import Service
from tests.activities.git.conftest import commit_file, run_git
from tests.bridge import seeds
from tests.bridge.grown import FILE, grown
from tests.bridge.http.dashboard import planted
from tests.bridge.http.dashboard.planted import ROOT
from tests.bridge.http.dashboard.surfer import Surfer

pytestmark = pytest.mark.ruling("M3")

JOB = f"{ROOT}.1"
PAGE = f"/ui/jobs/{JOB}/diff"


async def test_lines_have_numbers_signs_and_colours(service: Service, ann: Surfer, tmp_path: Path) -> None:
    planted.writers(service, tmp_path, {"a": ("limiter.py", 'limit = 2 < 3  # "two\n')})
    html, number = (await ann.open(PAGE)).html, "<span class=n>{}</span>".format
    cut = f'<td class="code cut">limit = {number(1)}'
    add = f'<td class="code add">limit = {number(2)} &lt; {number(3)}  <span class=c># &#34;two</span>'
    assert f'<tr><td class="no">1<td class="no">{cut}' in html
    assert f'<tr><td class="no"><td class="no">1{add}' in html
    html = (await ann.open(f"{PAGE}?view=split")).html
    assert f'<tr><td class="no">1{cut}</td><td class="no">1{add}' in html


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
