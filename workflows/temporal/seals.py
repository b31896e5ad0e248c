"""What bears no good seal of this service: how that is said, and how messages that people send by hand are told apart.

What makes and checks seals is `activities/sealing`; a workflow only learns what was found.
"""

from dataclasses import dataclass
from typing import Any

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema
from temporalio.exceptions import ApplicationError

UNSEALED = "Unsealed"
"""The error type of what was refused because it bears no good seal."""


class UnsealedError(ApplicationError):
    """A payload is not what this service wrote for this place. It is not believed, and trying again changes nothing."""

    def __init__(self, why: str) -> None:
        super().__init__(why, type=UNSEALED, non_retryable=True)


@dataclass(frozen=True)
class Said:
    """The value of a message, and whether a part of this service has sent it.

    Asked for as this type, a payload without any seal is read too: somebody may have sent it by hand. One with a wrong
    seal never is. Where nothing is sealed, all counts as ours.
    """

    value: Any
    ours: bool = True

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(cls, core_schema.any_schema())
