"""Failures are shrunk to their shortest script."""

from tests.chaos import shrink
from tests.chaos.shrink import Script
from tests.chaos.workloads import WORKLOADS

LONG = (
    "chain, claim written, 3, kill worker; pair, snapshot pushed, 1, kill bridge; "
    "nested, claim written, 4, freeze server; retry, run claimed, 2, kill helper"
)


def test_a_failure_that_needs_two_faults_keeps_these_two_in_smaller_trees_at_earlier_arrivals() -> None:
    tried = list[Script]()

    def fails(script: Script) -> bool:
        tried.append(script)
        faults = {case.fault for case in script if case.nth > 1}
        return faults >= {"kill worker", "freeze server"}

    shortest = shrink.shortest(shrink.read(LONG), fails)
    assert {case.fault for case in shortest} == {"kill worker", "freeze server"}
    assert {case.nth for case in shortest} == {2}
    assert {len(WORKLOADS[case.workload].states) for case in shortest} == {2}
    assert len(tried) < 60


def test_a_script_that_does_not_fail_again_stays_as_it_is() -> None:
    script = shrink.read(LONG)
    assert shrink.shortest(script, lambda simpler: False) == script
