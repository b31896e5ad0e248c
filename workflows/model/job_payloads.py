"""Payloads of events about agents' runs and their rows. Others: `tree_payloads`, `people_payloads`."""

from workflows.model.payload import Payload


class RecordRefusedPayload(Payload):
    """The reason the store refused rows for good, and their jobs: the rows were written shortened (ruling B6)."""

    why: str
    jobs: list[str]


class AmbiguousPayload(Payload):
    """The numbers of candidates in an agent's output, if there was more than one (ruling A1)."""

    valid: int
    later_invalid: int


class KeysDroppedPayload(Payload):
    """Unknown keys of a result that was accepted without them (ruling A3)."""

    keys: list[str]


class RunAgainPayload(Payload):
    """A reader's program was started a second time, because the end of the first one was not seen."""

    attempt: int


class CaveatPayload(Payload):
    """The caveat of the tree's result."""

    caveat: str


class BranchesPayload(Payload):
    """Branches that a reader had moved, as recorded by earlier releases (ruling I2)."""

    branches: list[str]


class LeftOutPayload(Payload):
    """Things in a work folder that no commit can hold, or that a person should know of (ruling N3)."""

    found: list[str]


class SessionPayload(Payload):
    """A continuation started a session of its own instead of resuming one (ruling K3)."""

    session: str | None
    why: str
