"""The parts of the pages (ruling M7)."""

import hashlib
import re

import pytest

from bridge.http.dashboard.frame.render import HERE, STATIC

VENDORED = {
    "htmx-4.0.1.min.js": "a0abb04f2f45a1f89d1d4844023245537e5e6014c87b144553e0607b4cc32130",
}
"""Digests of the files in the package htmx.org 4.0.1."""


@pytest.mark.ruling("M7")
@pytest.mark.parametrize(("name", "digest"), VENDORED.items())
def test_what_is_not_ours_is_what_its_makers_released(name: str, digest: str) -> None:
    assert hashlib.sha256((STATIC / name).read_bytes()).hexdigest() == digest


@pytest.mark.ruling("M7")
def test_there_is_one_stylesheet_and_one_short_script_of_ours() -> None:
    ours = {path.name for path in STATIC.iterdir() if path.suffix in {".js", ".css"}} - set(VENDORED)
    assert ours == {"page.css", "page.js"}
    assert len((STATIC / "page.js").read_text().splitlines()) <= 200


@pytest.mark.ruling("M7")
def test_every_block_of_the_stylesheet_is_closed_before_the_next_begins() -> None:
    blocks = (STATIC / "page.css").read_text().split("\n/* ")
    assert [block[:60] for block in blocks if block.count("{") != block.count("}")] == []


@pytest.mark.ruling("M5")
def test_no_field_has_a_name_that_forms_have_a_meaning_for() -> None:
    """A script that reads `form` or `action` of a form would get the field, and send nothing at all."""
    named = "".join(path.read_text() for path in (HERE / "templates").iterdir())
    names = set(re.findall(r'<(?:input|textarea|select|button)[^>]*? name="([^"]*)"', named))
    assert "form_id" in names
    assert not names & {"form", "action", "method", "submit", "elements", "target", "closest", "id", "name", "matches"}
