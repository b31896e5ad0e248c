"""Following a job to its end: what `--wait` does."""

import sys
import time
from typing import TYPE_CHECKING

from cli.output import say, say_json
from cli.words import in_words

if TYPE_CHECKING:
    from bridge.operations.service import Service

INTERVAL = 0.2


def follow(service: "Service", job_id: str, *, json: bool) -> int:
    """Say each change once, then the end; 0 when the job succeeded, 1 when it did not."""
    from activities.store.jobs import ENDED
    from bridge.operations import jobs

    said = ""
    seen = 0
    while True:
        job = jobs.get(service, job_id)
        events = jobs.events(service, job_id, after=seen)
        for event in events:
            seen += 1
            print(f"{event.kind}: {event.message}", file=sys.stderr)  # noqa: T201
        if job.state != said and not json:
            print(f"{job_id} {job.state}", file=sys.stderr)  # noqa: T201
        said = job.state
        if job.state in ENDED:
            break
        time.sleep(INTERVAL)
    detail = jobs.detail(service, job_id)
    if json:
        say_json(jobs.as_json(detail))
    else:
        say(in_words(detail))
    return 0 if job.state == "succeeded" else 1
