"""The alert rules and the board: well-formed, and each metric that they name exists."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from activities.settings.home import Home
from bridge.operations.health.metrics import Metrics
from bridge.operations.service import Service
from cli.main import command_of
from tests.temporal.sdk_metrics import METRICS as OF_WORKERS
from tests.written import ROOT

pytestmark = pytest.mark.ruling("Q9")

FOLDER = ROOT / "dev-cluster/monitoring"
NAME = re.compile(r"\b(?:service|temporal)_[a-z0-9_]+")
FUNCTION = re.compile(r"\b([a-z_]+)\s*\(")
FUNCTIONS = {"absent", "by", "histogram_quantile", "increase", "max", "min", "rate", "sum"}


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def expressions() -> Iterator[str]:
    yield from (rule["expr"] for rule in rules())
    for panel in json.loads((FOLDER / "board.json").read_text())["panels"]:
        yield from (target["expr"] for target in panel["targets"])


def test_every_metric_that_rules_and_board_name_exists(home: Home) -> None:
    service = Service(home)
    text, _ = Metrics(service).text("")
    service.store.dispose()
    ours = set(re.findall(r"^# TYPE (\S+)", text.decode(), re.MULTILINE))
    named = {name for expression in expressions() for name in NAME.findall(expression)}
    assert named - ours - OF_WORKERS == set()
    unused = {"service_host_slots", "service_jobs_running"} - named
    assert unused == set()


def test_the_expressions_are_closed_and_call_known_functions() -> None:
    for expression in expressions():
        assert set(FUNCTION.findall(expression)) <= FUNCTIONS, expression
        for opening, closing in ("()", "[]", "{}"):
            assert expression.count(opening) == expression.count(closing), expression


def test_every_alert_says_what_is_wrong_and_what_to_type() -> None:
    assert len({rule["alert"] for rule in rules()}) == len(rules())
    for rule in rules():
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert rule["annotations"]["summary"].endswith(".")
        commands = re.findall(r"service ([a-z]+)(?: ([a-z]+))?", rule["annotations"]["action"])
        assert commands, rule["alert"]
        for noun, verb in commands:
            assert not verb or verb in getattr(command_of(noun), "commands", {}), (noun, verb)


def test_the_panels_of_the_board_do_not_overlap() -> None:
    board = json.loads((FOLDER / "board.json").read_text())
    cells: dict[tuple[int, int], str] = {}
    for panel in board["panels"]:
        at = panel["gridPos"]
        for cell in [(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])]:
            assert cells.setdefault(cell, panel["title"]) == panel["title"]
            assert cell[0] < 24
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
