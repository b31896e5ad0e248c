"""The matrix of faults: five cases that matter most, and what its lists are held to."""

import json
from itertools import count, islice

import pytest

from tests.chaos import cases, rounds, scorecard
from tests.chaos.cases import ROOT, Case, draw, reaches, stations
from tests.chaos.faults import all_faults
from tests.chaos.planted import BUGS
from tests.chaos.stack import stack
from tests.chaos.workloads import WORKLOADS
from tests.depth import cases as number

FIRST = (
    "pair, claim written, 2, kill whoever is there",
    "decide, rows written: record resume_accepted, 1, kill whoever is there",
    "nested, program started, 2, kill fork_server",
    "asking-leg, rows to be written: record batch_settled, 1, kill server",
    "chain, outcome recorded, 2, kill worker",
)
NOT_PLAYED: dict[str, str] = {}
"""The stations that no workload reaches, and why."""


@pytest.mark.ruling("engine:restores", "D1", "F4", "G1")
def test_nothing_is_lost_and_nothing_runs_twice_whatever_dies_at_a_station() -> None:
    seeds = (case for seed in count(1) if not (case := draw(seed)).needs and not case.made().seconds)
    drawn = [Case.read(words) for words in FIRST] + list(islice(seeds, number(0, 45)))
    failed = []
    with stack() as there:
        while drawn:
            now = rounds.beside(drawn, 8)
            failed += [
                outcome.as_row() for outcome in rounds.play(there, now) if outcome.failures and not outcome.missed
            ]
    assert not failed, json.dumps(failed, indent=1)


def test_every_station_of_the_code_is_reached_or_says_why_not() -> None:
    known = {station.partition(":")[0] for counts in reaches().values() for station in counts}
    assert stations().keys() - known == NOT_PLAYED.keys(), "write it anew: python -m tests.chaos --profile"
    assert known <= stations().keys()
    assert reaches().keys() == WORKLOADS.keys() - cases.OPEN.keys()


def test_a_planted_bug_is_one_of_the_code_of_today() -> None:
    for name, edits in BUGS.items():
        for path, old, _ in edits:
            assert (ROOT / path).read_text().count(old) == 1, f"{path} says something else now; write {name!r} anew"


def test_a_seed_is_one_case_and_is_spelt_out() -> None:
    for seed in range(200):
        case = draw(seed)
        assert case == draw(seed)
        assert str(Case.read(str(case))) == str(case)
    assert {draw(seed).fault for seed in range(4000)} == all_faults().keys() - set(cases.NOT_DRAWN)


def test_a_card_counts_the_time_in_which_cases_were_played_and_no_pause() -> None:
    row = {"station": "tree started", "fault": "kill worker", "proof": "it died", "failures": [], "seconds": 120.0}
    card = scorecard.made([row | {"at": at} for at in (120, 180, 9000)])
    assert (card["cases"], card["minutes"]) == (3, 5)


@pytest.mark.ruling("K6")
def test_the_page_shows_the_scorecard() -> None:
    card = json.loads(scorecard.CARD.read_text())
    assert scorecard.PAGE.read_text() == scorecard.page(card)
    assert {"date", "commit", "cases", "cells", "failed", "seconds", "minutes"} == card.keys()
    assert sum(cell[0] for faults in card["cells"].values() for cell in faults.values()) == card["cases"]
