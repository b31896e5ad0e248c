"""A diff as a page shows it (ruling M3)."""

import pytest

from bridge.http.dashboard.parts.patches import beginning, files

pytestmark = pytest.mark.ruling("M3")

DIFF = """diff --git a/a b.py b/a b.py
index 1..2 100644
--- a/a b.py
+++ b/a b.py
@@ -1,2 +1,2 @@ def f():
 same
-old
--- old too
+new
diff --git a/old.py b/new.py
similarity index 100%
rename from old.py
rename to new.py
diff --git a/pic.png b/pic.png
Binary files differ
"""


def test_files_with_their_lines_by_kind() -> None:
    changed, renamed, binary = files(DIFF)
    assert (changed.path, changed.added, changed.removed) == ("a b.py", 1, 2)
    assert [kind for kind, _ in changed.parts] == ["same", "hunk", "same", "cut", "add"]
    assert changed.parts[3][1] == "-old\n--- old too"
    assert (renamed.path, renamed.added, binary.path) == ("new.py", 0, "pic.png")


def test_nothing_changed() -> None:
    assert files("") == ()


@pytest.mark.parametrize(("limit", "text", "cut"), [(9, "one\ntwo\n", False), (6, "one", True), (2, "on", True)])
def test_a_large_diff_is_cut_at_a_line(limit: int, text: str, cut: bool) -> None:
    assert beginning(iter([b"one\n", b"two\n"]), limit) == (text, cut)


def test_any_bytes_are_text() -> None:
    assert beginning([b"\xff+\n"], 100) == ("\\xff+\n", False)
