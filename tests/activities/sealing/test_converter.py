"""The converter of a place is made once, and each place has its own."""

import pytest
from temporalio.converter import ActivitySerializationContext, WorkflowSerializationContext

from activities.sealing import converter
from activities.sealing.converter import sealing_converter
from workflows.temporal.seals import UnsealedError

pytestmark = pytest.mark.ruling("N1")

TREE = WorkflowSerializationContext("default", "job-aedc036l7gqi")
LEG = WorkflowSerializationContext("default", "job-aedc036l7gqi.1")


def test_the_converter_of_a_place_is_cached() -> None:
    whole = sealing_converter(b"k" * 32)
    assert whole.with_context(TREE) is whole.with_context(WorkflowSerializationContext(**vars(TREE)))
    assert whole.with_context(TREE) is not whole.with_context(LEG)


def test_each_place_has_its_own_converter() -> None:
    whole = sealing_converter(b"k" * 32)
    run = ActivitySerializationContext("default", "1", "run_job", "q", "job-aedc036l7gqi", None, False)
    places = (TREE, LEG, run)
    for place in places:
        written = whole.with_context(place).payload_converter.to_payloads(["said"])
        assert whole.with_context(place).payload_converter.from_payloads(written, [str]) == ["said"]
        for other in places:
            if other is not place:
                with pytest.raises(UnsealedError):
                    whole.with_context(other).payload_converter.from_payloads(written, [str])


def test_the_cache_of_places_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(converter, "PLACES", 3)
    whole = sealing_converter(b"other key" * 4)
    made = [whole.with_context(WorkflowSerializationContext("default", f"job-{number}")) for number in range(10)]
    assert len(made) == 10
    assert len(whole._places) <= 3  # type: ignore[attr-defined]
