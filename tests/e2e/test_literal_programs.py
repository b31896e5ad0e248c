"""The table of the literal model behind codex, claude and kimi: init's team ends README's order merged, in each shape.

Each program leads and builds in one team and checks in another one.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import literal
from tests.e2e.conftest import set_up
from tests.e2e.limiter import SHAPES, Walk, merge, order, register, resolve
from tests.e2e.programs import need, sections, variables
from tests.scripted_model import ScriptedModel

pytestmark = [pytest.mark.long, pytest.mark.ruling("P2", "P3", "P5", "O6")]

TEAMS = [("codex", "claude"), ("claude", "kimi"), ("kimi", "codex")]
PLAYED = {name: SHAPES[name] for name in ("plain", "conflict", "failed check", "workers of its own", "left out")}
"""Shapes in which the programs differ; `test_literal` plays the others."""


@pytest.fixture(scope="module", params=TEAMS, ids="-".join)
def walks(request: pytest.FixtureRequest, outside_dev: Path) -> Iterator[dict[str, Walk]]:
    """Give all orders to a team."""
    builder, checker = request.param
    need(builder, checker)
    folder = outside_dev / f"{builder}-{checker}"
    folder.mkdir()
    service = set_up(folder)
    with ScriptedModel({"answer": literal.obey}) as model:
        service.extra.update(variables(service.home.parent / "programs", model))
        service.home.joinpath("config.toml").write_text(sections(model, read=[sys.prefix, sys.base_prefix]))
        try:
            tried = register(service, builder, checker)
            yield {"try": tried} | {shape: order(service, words) for shape, (words, _) in PLAYED.items()}
        finally:
            service("daemon", "stop")


@pytest.mark.parametrize("shape", PLAYED)
def test_every_shape_ends_done(walks: dict[str, Walk], shape: str) -> None:
    _, jobs = PLAYED[shape]
    assert walks[shape].jobs == jobs
    assert walks[shape].ended == ("done", "")


@pytest.mark.parametrize("shape", PLAYED)
def test_its_work_is_merged_by_one_command(walks: dict[str, Walk], shape: str) -> None:
    if shape == "left out":
        assert resolve(walks[shape]).jobs == [("none", "succeeded", "implemented")]
    assert "Three calls are allowed." in merge(walks[shape])
