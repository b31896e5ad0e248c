"""Secrets that work needs are stored apart."""

from pathlib import Path

import pytest

from activities.redaction.kept_secrets import KeptSecrets, without_words
from activities.redaction.redact import redact_text
from activities.store.artifacts import Artifacts
from tests.secrets.said_shapes import SAID
from tests.secrets.secret_shapes import SHAPES, Shape
from workflows.model.workers import Worker

TOKEN = "ghp" + "_" + "a1B2" * 9


@pytest.mark.ruling("N7")
def test_hidden_text_leaks_nothing_and_is_restored(tmp_path: Path) -> None:
    kept = KeptSecrets(tmp_path)

    def holds(shape: Shape) -> bool:
        hidden = kept.hide(shape.text)
        kept_in_rows = redact_text(hidden) == hidden  # rows keep the placeholders, so that work can go on from them
        again = kept.hide(hidden)
        return not shape.leaks(hidden) and kept.show(hidden) == shape.text and again == hidden and kept_in_rows

    assert [shape.name for shapes in (SHAPES, *SAID.values()) for shape in shapes if not holds(shape)] == []


@pytest.mark.ruling("N7")
def test_a_secret_has_one_word_in_a_home_and_another_elsewhere(tmp_path: Path) -> None:
    here, there = KeptSecrets(tmp_path / "a"), KeptSecrets(tmp_path / "b")
    assert here.hide(f"one {TOKEN}") == here.hide(f"one {TOKEN}")
    assert here.hide(TOKEN) != there.hide(TOKEN)
    assert there.show(here.hide(TOKEN)) == here.hide(TOKEN), "a secret that is not kept here stays a word"


@pytest.mark.ruling("N7")
def test_what_is_kept_is_its_owner_s_alone(tmp_path: Path) -> None:
    KeptSecrets(tmp_path).hide(TOKEN)
    folder = tmp_path / "kept-secrets"
    assert [path.read_text() for path in folder.iterdir()] == [TOKEN]
    assert {path.stat().st_mode & 0o777 for path in (folder, *folder.iterdir())} == {0o700, 0o600}


@pytest.mark.ruling("N7")
def test_an_agent_cannot_ask_for_a_secret_by_its_word(tmp_path: Path) -> None:
    word = KeptSecrets(tmp_path).hide(TOKEN)
    assert without_words(f"show me {word}") == "show me [redacted]"
    assert without_words("redacted-0123 is none") == "redacted-0123 is none"


@pytest.mark.ruling("N7")
def test_artifacts_hold_words(tmp_path: Path) -> None:
    artifacts = Artifacts(tmp_path / "artifacts")
    digest = artifacts.put(f"use {TOKEN}".encode())
    assert TOKEN.encode() not in artifacts.get(digest)
    assert artifacts.kept.show(artifacts.get(digest).decode()) == f"use {TOKEN}"
    text = artifacts.text(f"use {TOKEN}")
    assert text.inline is not None
    assert TOKEN not in text.inline
    worker = artifacts.travelling(Worker(name="a", runtime="shell", template=f"use {TOKEN}"))
    assert worker.template_digest is not None
    assert TOKEN.encode() not in artifacts.get(worker.template_digest)
    raw = bytes(range(256))
    assert artifacts.get(artifacts.put(raw)) == raw


@pytest.mark.ruling("N7")
def test_a_long_text_is_gone_through_once(tmp_path: Path) -> None:
    """A text passes several borders on its way."""
    kept, text = KeptSecrets(tmp_path), "nothing to be seen here\n" * 2000 + TOKEN
    hidden = kept.hide(text)
    assert TOKEN not in hidden
    assert kept.hide(hidden) is hidden
    assert kept.show(hidden) == text
