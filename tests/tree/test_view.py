"""The size of the Temporal web UI's texts for a tree."""

import pytest

from tests.tree.simulator import World, delegation, tree_input
from workflows.model.rows import Records
from workflows.tree.commands import Record
from workflows.tree.details import COLUMN, details, wrote

LONG = "A rather long sentence about what was found out, which goes on and on beyond any column " * 3
ASKS = ({"id": "which-database", "prompt": LONG, "choices": ["PostgreSQL 15", "SQLite, with its log written ahead"]},)


@pytest.mark.ruling("engine:ui.details")
def test_no_line_of_a_box_is_wider_than_the_box_and_no_command_is_cut() -> None:
    world = World(tree_input()).begin()
    world.coordinator("approved", delegation("an-implementer-with-a-long-name"), summary=LONG)
    world.leg("an-implementer-with-a-long-name", summary=LONG, human_questions=ASKS)
    shown = details(world.state)
    boxes = shown.split("```")[1::2]
    assert len(boxes) == 3, "what is asked, the words to paste, the jobs"
    assert all(len(line) <= COLUMN for box in (boxes[0], boxes[2]) for line in box.splitlines())
    assert " ".join(boxes[0].split()).count(" ".join(LONG.split())) == 1, "nothing of the question is lost"
    commands = world.open()[0].commands
    assert commands
    assert all(f"\n`{command}`" in shown for command in commands)


@pytest.mark.ruling("engine:ui.details")
def test_a_step_says_what_it_wrote() -> None:
    world = World(tree_input()).begin()
    world.coordinator("approved", delegation("a"), delegation("b", deps=("a",)))
    commands = world.leg("a", human_questions=ASKS)
    record = next(each for each in commands if isinstance(each, Record))
    said = wrote(record.records)
    assert ".1 succeeded" in said
    assert "round 1 open" in said
    assert "task awaiting_human" in said
    assert wrote(Records()) == "nothing of a tree"
