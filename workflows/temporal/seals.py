"""The error for payloads without a valid seal of this service, and the type of messages that people may send by hand.

`activities/sealing` makes and checks seals; workflows only see the result.
"""

from dataclasses import dataclass
from typing import Any

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema
from temporalio.exceptions import ApplicationError

UNSEALED = "Unsealed"
"""The error type of a payload that was refused for lack of a valid seal."""


class UnsealedError(ApplicationError):
    """This service did not write the payload for this place. The payload is not trusted, and a retry changes
    nothing.
    """

    def __init__(self, why: str) -> None:
        super().__init__(why, type=UNSEALED, non_retryable=True)


@dataclass(frozen=True)
class Message:
    """The value of a message, and whether a process of this service sent it.

    A payload without any seal is decoded to this type too, since a person may have sent it by hand; a payload with a
    wrong seal never is. If sealing is off, all messages count as the service's.
    """

    value: Any
    ours: bool = True

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(cls, core_schema.any_schema())
