"""A control group for the agents of this process."""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from activities.boxes.control_group import Group, make
from activities.host import helper_process
from activities.runs import spawn
from tests.waiting import wait_for

NONE: Mapping[str, int] = {}


@contextmanager
def kept_within(limits: Mapping[str, int], jobs: Mapping[str, int] = NONE) -> Iterator[Group]:
    """Run agents of this context in a group with these limits; skip the test if none can be made."""
    group = make(f"service-test-{secrets.token_hex(6)}", limits, jobs)
    if group is None or set(group.folders) < set(limits):
        pytest.skip("this account may make no control group here")
    _close()
    spawn.keep_within(group)
    try:
        yield group
    finally:
        _close()
        spawn.keep_within(None)
        wait_for(group.remove)  # the last processes of a run may be about to end


def _close() -> None:
    """End the fork servers and helpers of this process, so that new ones start in the group."""
    helper_process.close()
    spawn.close()
