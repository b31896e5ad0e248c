"""Payloads of events about agents' runs and the rows written of them. Others: `tree_payloads`, `people_payloads`."""

from workflows.model.payload import Payload


class RecordRefusedPayload(Payload):
    """Why the store refused rows for good, and whose they are: they were written shortened (ruling B6)."""

    why: str
    jobs: list[str]


class AmbiguousPayload(Payload):
    """More candidates than one in an agent's output (ruling A1)."""

    valid: int
    later_invalid: int


class KeysDroppedPayload(Payload):
    """Unknown keys of a result that was accepted without them (ruling A3)."""

    keys: list[str]


class RunAgainPayload(Payload):
    """A reader's program was started a second time, because nobody saw how the first one ended."""

    attempt: int


class CaveatPayload(Payload):
    """What the tree's result must be read with."""

    caveat: str


class BranchesPayload(Payload):
    """Branches that a reader had moved, as earlier releases told (ruling I2)."""

    branches: list[str]


class LeftOutPayload(Payload):
    """What a work folder held that no commit can hold, or that a person should know of (ruling N3)."""

    found: list[str]


class SessionPayload(Payload):
    """A continuation began a session of its own where it should have gone on in one (ruling K3)."""

    session: str | None
    why: str
