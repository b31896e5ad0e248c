"""GitHub's command line reads and writes the tests' GitHub like the real one."""

from pathlib import Path

import pytest

from tests.github.gh import gh
from tests.github.hub import Hub

pytestmark = pytest.mark.long
COMMENTS = "repos/acme/tool/issues/1/comments"


def test_it_follows_the_pages_and_writes(github: Hub, tmp_path: Path) -> None:
    github.issue()
    for number in range(3):
        github.comment("bob", 1, f"comment {number}")
    ann = github.tokens["ann"]
    listed = gh(github, ann, tmp_path, "api", "--paginate", f"{COMMENTS}?per_page=2", "--jq", ".[].body")
    assert listed.splitlines() == ["comment 0", "comment 1", "comment 2"]
    gh(github, ann, tmp_path, "api", COMMENTS, "-f", "body=written by gh")
    assert github.bodies(1)[-1] == "written by gh"
    assert [seen.method for seen in github.requests] == ["GET", "GET", "POST"]
