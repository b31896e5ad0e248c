"""A diff split into files and numbered lines (ruling M3)."""

from pathlib import Path

import pytest

from activities.git.git_branches import patch
from bridge.operations.branches.diffs import LineKind, beginning, files, find_line, lines, side_by_side, unquote
from tests.activities.git.conftest import make_repository, run_git

pytestmark = pytest.mark.ruling("M3")

DIFF = """diff --git a/a b.py b/a b.py
index 1..2 100644
--- a/a b.py
+++ b/a b.py
@@ -1,3 +1,3 @@ def f():
 same
-old
--- old too
+new
+++ new too
@@ -10 +10,2 @@
-last
\\ No newline at end of file
+last
+diff --git a/no b/file
"""


def test_lines_have_their_numbers_in_the_old_and_the_new_file() -> None:
    [file] = files(DIFF)
    assert (file.path, file.added, file.removed) == ("a b.py", 4, 3)
    assert [(line.kind.value, line.old, line.new, line.text) for line in lines(file)] == [
        ("hunk", None, None, "@@ -1,3 +1,3 @@ def f():"),
        ("same", 1, 1, "same"),
        ("cut", 2, None, "old"),
        ("cut", 3, None, "-- old too"),
        ("add", None, 2, "new"),
        ("add", None, 3, "++ new too"),
        ("hunk", None, None, "@@ -10 +10,2 @@"),
        ("cut", 10, None, "last"),
        ("remark", None, None, "No newline at end of file"),
        ("add", None, 10, "last"),
        ("add", None, 11, "diff --git a/no b/file"),
    ]


def test_a_line_is_found_by_its_number() -> None:
    [file] = files(DIFF)
    assert (find_line(file, 2).text, find_line(file, 2, old=True).text, find_line(file, 4)) == ("new", "old", None)  # type: ignore[union-attr]
    assert [line.place for line in lines(file) if line.text == "last"] == ["o10", "n10"]


def test_side_by_side_the_removed_lines_stand_beside_the_added_ones() -> None:
    [file] = files(DIFF)
    shown = [(old and old.text, new and new.text) for old, new in side_by_side(lines(file))]
    assert shown[1:4] == [("same", "same"), ("old", "new"), ("-- old too", "++ new too")]
    assert shown[5:] == [
        ("last", None),
        ("No newline at end of file", "No newline at end of file"),
        (None, "last"),
        (None, "diff --git a/no b/file"),
    ]


def test_lines_that_follow_a_hunk_are_no_part_of_it() -> None:
    [file] = files("diff --git a/a b/a\n@@ -1 +1 @@\n-1\n+2\n\n[cut here]\n")
    assert [line.kind for line in lines(file)] == [LineKind.HUNK, LineKind.CUT, LineKind.ADD]


def test_names_and_remarks_are_what_git_means(tmp_path: Path) -> None:
    """Blanks, quotes, renames, modes, binary files, files that come and go."""
    repo = make_repository(
        tmp_path / "shop", **{"sp ace.txt": "a\nb\nc\n", 'ü"q.txt': "x\n", "run.sh": "ls\n", "go.txt": "go\n"}
    )
    (repo / "sp ace.txt").rename(repo / "an other.txt")
    (repo / "an other.txt").write_text("a\nb\nc")
    (repo / 'ü"q.txt').write_text("y\n")
    (repo / "run.sh").chmod(0o755)
    (repo / "go.txt").unlink()
    (repo / "pic.png").write_bytes(b"\0\1")
    run_git(repo, "add", "-A")
    run_git(repo, "commit", "-q", "-m", "all of it")
    text, _ = beginning(patch(repo, "HEAD~", "HEAD", binary=False), 100_000)
    assert {file.path: (file.added, file.removed, file.remarks) for file in files(text)} == {
        "an other.txt": (1, 1, ("renamed from sp ace.txt",)),
        "go.txt": (0, 1, ("deleted",)),
        "pic.png": (0, 0, ("new", "binary")),
        "run.sh": (0, 0, ("mode 100644 → 100755",)),
        'ü"q.txt': (1, 1, ()),
    }


def test_nothing_changed() -> None:
    assert files("") == ()


@pytest.mark.parametrize(
    ("quoted", "name"),
    [("plain", "plain"), ('"\\303\\274\\t\\"q\\\\"', 'ü\t"q\\'), ('"\\377"', "\\xff"), ('"', '"')],
)
def test_names_in_quotes(quoted: str, name: str) -> None:
    assert unquote(quoted) == name


@pytest.mark.parametrize(("limit", "text", "cut"), [(9, "one\ntwo\n", False), (6, "one", True), (2, "on", True)])
def test_a_large_diff_is_cut_at_a_line(limit: int, text: str, cut: bool) -> None:
    assert beginning(iter([b"one\n", b"two\n"]), limit) == (text, cut)


def test_any_bytes_are_text() -> None:
    assert beginning([b"\xff+\n"], 100) == ("\\xff+\n", False)
