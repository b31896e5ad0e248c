"""Named tokens: stored as digests, in a file that only the owner can read (ruling N5)."""

import stat

import pytest

from activities.settings.home import Home
from bridge.machine import tokens_file
from bridge.machine.token_scopes import TokenScope
from bridge.machine.tokens_file import NamedTokens
from workflows.model.errors import NotFoundError, RefusedError, UsageError

pytestmark = pytest.mark.ruling("N5")


def test_a_token_is_known_by_what_was_shown_once_and_kept_nowhere(bare_home: Home) -> None:
    token = tokens_file.add(bare_home, "ci", "ask")
    assert len(token) >= 40
    assert not [each for each in bare_home.root.iterdir() if token in each.read_text()]
    assert stat.S_IMODE(bare_home.bridge_tokens.stat().st_mode) == 0o600
    kept = NamedTokens(bare_home)
    known = kept.find(token.encode())
    assert known is not None
    assert (known.name, known.scope) == ("ci", TokenScope.ASK)
    assert kept.find(known.digest.encode()) is None
    assert kept.find(b"") is None


def test_names_are_their_owners_and_plain(bare_home: Home) -> None:
    tokens_file.add(bare_home, "ci", "read")
    with pytest.raises(RefusedError, match="there is a token ci already"):
        tokens_file.add(bare_home, "ci", "act")
    for name in ("", "A", "-x", "a b", "ann\n", "a" * 41, "bridge", "x\u202e"):
        with pytest.raises(UsageError):
            tokens_file.add(bare_home, name, "read")
    with pytest.raises(UsageError, match="'all' is not a scope; use one of read, ask, act"):
        tokens_file.add(bare_home, "web", "all")
    with pytest.raises(NotFoundError):
        tokens_file.remove(bare_home, "web")
    assert [each.name for each in tokens_file.every(bare_home)] == ["ci"]


def test_a_file_that_cannot_be_read_opens_nothing_and_is_not_written_over(bare_home: Home) -> None:
    token = tokens_file.add(bare_home, "ci", "read")
    bare_home.bridge_tokens.write_text("{")
    assert NamedTokens(bare_home).find(token.encode()) is None
    with pytest.raises(RefusedError, match="cannot be read"):
        tokens_file.add(bare_home, "web", "read")
    assert bare_home.bridge_tokens.read_text() == "{"


def test_each_scope_covers_those_before_it() -> None:
    order = [TokenScope.READ, TokenScope.ASK, TokenScope.ACT]
    assert [[a.covers(b) for b in order] for a in order] == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]
