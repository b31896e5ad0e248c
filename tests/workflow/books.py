"""What must hold in the rows that any tree wrote, however often it was interrupted."""

from collections import Counter
from collections.abc import Sequence

from workflows.policy.settings import Bounds
from workflows.tree.jobs import Continuation, JobRun, JobState, TaskState
from workflows.tree.records import EventRecord, JobRecord, Records, TaskRecord
from workflows.tree.state import TERMINAL

RAN = TERMINAL - {JobState.SKIPPED}


class Books:
    """The rows as a store would hold them, and every version of a job's row on the way."""

    def __init__(self, written: Sequence[Records]) -> None:
        self.versions: dict[str, dict[int, JobRecord]] = {}
        self.events: dict[str, EventRecord] = {}
        self.tasks: dict[int, TaskRecord] = {}
        for records in written:
            for job in records.jobs:
                known = self.versions.setdefault(job.job_id, {})
                assert _timeless(known.setdefault(job.revision, job)) == _timeless(job), "a revision says one thing"
            for event in records.events:
                first = self.events.setdefault(event.event_id, event)
                assert first.model_copy(update={"at": event.at}) == event, "an event id is of one event"
            if records.task:
                self.tasks[records.task.revision] = records.task

    @property
    def jobs(self) -> dict[str, JobRecord]:
        return {job_id: known[max(known)] for job_id, known in self.versions.items()}

    @property
    def task(self) -> TaskRecord:
        return self.tasks[max(self.tasks)]

    @property
    def task_state(self) -> TaskState | None:
        return self.task.state if self.tasks else None

    def states(self) -> Counter[JobState]:
        return Counter(job.state for job in self.jobs.values())

    def named(self, leg_id: str) -> JobRecord:
        return next(job for job in self.jobs.values() if job.delegation_id == leg_id)

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events.values()]

    def check(self, runs: Sequence[JobRun], bounds: Bounds) -> None:
        """The invariants of a tree that is over."""
        alive = [job for job in self.jobs.values() if job.state not in TERMINAL]
        assert not alive, f"every job ended: {alive}, {self.task}"
        assert self.task_state is not TaskState.OPEN
        self._each_attempt_ended_once()
        self._each_attempt_ran_once(runs)
        self._ids_count_on()
        finals = [job for job in self.jobs.values() if job.continuation is Continuation.FINALIZE]
        assert len(finals) <= 1, "one finalize per tree"
        continued = Counter(job.parent_job_id for job in self.jobs.values() if job.delegation_id is None)
        assert set(continued.values()) <= {1}, "one continuation per batch"
        attempts = sum(job.attempt for job in self.jobs.values()) - 1
        assert attempts - len(finals) <= bounds.max_delegation_total_jobs
        assert all(
            job.delegation_depth <= bounds.max_delegation_depth for job in self.jobs.values() if job not in finals
        )

    def _each_attempt_ended_once(self) -> None:
        """A leg that was skipped may wait again and be skipped again; one that ran ends once per attempt."""
        for known in self.versions.values():
            rows = [known[revision] for revision in sorted(known)]
            ends = Counter(
                job.attempt
                for job, before in zip(rows, [None, *rows], strict=False)
                if job.state in RAN and (before is None or before.state not in RAN)
            )
            assert set(ends.values()) <= {1}, f"an attempt ends once: {rows}"

    def _each_attempt_ran_once(self, runs: Sequence[JobRun]) -> None:
        ran = Counter((run.job_id, run.attempt) for run in runs)
        assert set(ran.values()) <= {1}, "no attempt runs twice"
        for job_id, attempt in ran:
            assert self.jobs[job_id].attempt >= attempt

    def _ids_count_on(self) -> None:
        numbers = sorted(int(job_id.partition(".")[2] or 0) for job_id in self.jobs)
        assert numbers == list(range(len(numbers))), "job ids have no gap"
        told = sorted(int(event_id.rpartition("-e")[2]) for event_id in self.events)
        assert told == list(range(1, len(told) + 1)), "event ids have no gap"


def _timeless(job: JobRecord) -> JobRecord:
    """A workflow task that was lost is done again, later."""
    return job.model_copy(update={"queued_at": 0.0, "started_at": None, "ended_at": None})
