"""Parameters of paths, queries and headers. The OpenAPI document declares their exact limits; operations refuse invalid
values with a sentence.
"""

from collections.abc import Iterable
from typing import Annotated, Any

from fastapi import Header, Path, Query

from bridge.operations.jobs.tree_list import STATES
from bridge.operations.paging import LONGEST_SEARCH
from workflows.model.states import JobState
from workflows.pipeline.plan import RunState

LARGEST = 2**31 - 1
LARGEST_OFFSET = 2**53 - 1
JOB_PATTERN = r"^job-[0-9a-v]{12}(\.[1-9][0-9]{0,3})?$"
DURATION_PATTERN = r"^([1-9][0-9]{0,2}d)?([1-9][0-9]{0,3}h)?([1-9][0-9]{0,4}m)?([1-9][0-9]{0,4}s)?([1-9][0-9]{0,5}ms)?$"
_JOB = {"pattern": JOB_PATTERN}


def _one_of(states: Iterable[str]) -> dict[str, Any]:
    return {"enum": [str(state) for state in states]}


JobId = Annotated[str, Path(json_schema_extra=_JOB)]
TreeOf = Annotated[str | None, Query(description="A job; its whole tree is listed.", json_schema_extra=_JOB)]
JobStateIs = Annotated[str | None, Query(json_schema_extra=_one_of(JobState))]
TreeStateIs = Annotated[str | None, Query(json_schema_extra=_one_of(STATES))]
RunStateIs = Annotated[str | None, Query(json_schema_extra=_one_of(RunState))]
Limit = Annotated[int, Query(ge=1, le=200)]
Cursor = Annotated[
    str | None,
    Query(description="`next_cursor` of the previous page.", json_schema_extra={"minLength": 1}),
]
SearchText = Annotated[
    str, Query(max_length=LONGEST_SEARCH, description="Words, each in the title, or in a job's id, leg or agent.")
]
JudgedPullRequest = Annotated[int | None, Query(ge=1, le=LARGEST, description="Judge the head of this pull request.")]
PullRequest = Annotated[int | None, Query(ge=1, le=LARGEST, description="Only work that belongs to this pull request.")]
Issue = Annotated[int | None, Query(ge=1, le=LARGEST, description="Only work that belongs to this issue.")]
Wait = Annotated[
    str | None,
    Query(
        description="Up to `60s`: answer when the job changes, or differs from If-None-Match.",
        json_schema_extra={"pattern": "^([0-9]|[1-5][0-9]|60)s$"},
    ),
]
Seen = Annotated[int, Query(ge=0, le=LARGEST, description="`seq` of the last event seen.")]
WholeTree = Annotated[
    bool | None,
    Query(description="True for the whole tree, false for this job alone; by default the tree if it is the root."),
]
AttemptNumber = Annotated[
    int | None, Query(ge=1, le=LARGEST, description="Number of the attempt; the last one by default.")
]
LogBefore = Annotated[
    int | None,
    Query(
        ge=0,
        le=LARGEST_OFFSET,
        description="`earlier_cursor` of the page after this one; takes precedence over `cursor`.",
    ),
]
LogCursor = Annotated[
    int | None, Query(ge=0, le=LARGEST_OFFSET, description="`next_cursor` of the page before this one.")
]
IfNoneMatch = Annotated[str | None, Header()]
LastEventId = Annotated[str | None, Header(json_schema_extra={"pattern": "^[0-9]{1,9}$"})]
IdempotencyKey = Annotated[
    str | None,
    Header(
        description="Repeated calls with one key and body start the work once; keys are kept for seven days.",
        json_schema_extra={"pattern": "^[!-~]{1,200}$"},
    ),
]
