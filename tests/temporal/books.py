"""Invariants of the rows that any tree wrote, however often it was interrupted."""

import re
from collections import Counter
from collections.abc import Sequence

from tests.tree.simulator import STORY
from workflows.model.jobs import JobRun
from workflows.model.rows import EventRecord, JobRecord, Records, RoundRecord, TaskRecord
from workflows.model.settings import Bounds
from workflows.model.states import ENDED_JOBS, Continuation, JobState, TaskState

CLOCKS = 5.0
"""A job may begin during its take-back; its claim decides (ruling B5). That takes at most this long on a busy
machine.
"""

RAN = ENDED_JOBS - {JobState.SKIPPED}


class Books:
    """The rows as a store would hold them, with every version of each job's row."""

    def __init__(self, written: Sequence[Records]) -> None:
        self.versions: dict[str, dict[int, JobRecord]] = {}
        self.events: dict[str, EventRecord] = {}
        self.tasks: dict[int, TaskRecord] = {}
        self.round_versions: dict[str, dict[int, RoundRecord]] = {}
        for records in written:
            self._rounds(records)
            for job in records.jobs:
                known = self.versions.setdefault(job.job_id, {})
                first = known.setdefault(job.revision, job)
                assert first is job or _timeless(first) == _timeless(job), "a revision says one thing"
            for event in records.events:
                before = self.events.setdefault(event.event_id, event)
                one = before is event or _of_any_time(before) == _of_any_time(event)
                assert one, f"an event id is of one event: {before}, {event}"
            if records.task:
                self.tasks[records.task.revision] = records.task

    def _rounds(self, records: Records) -> None:
        """Assert that nothing starts during a round that is open before and after a step (ruling F8)."""
        before = {row.round_id for row in self.open()}
        for row in records.rounds:
            self.round_versions.setdefault(row.round_id, {}).setdefault(row.revision, row)
        begun = [
            job
            for job in records.jobs
            if job.state is JobState.RUNNING and job.revision not in self.versions.get(job.job_id, {})
        ]
        for pause in (row for row in self.open() if row.round_id in before):
            late = [job for job in begun if (job.started_at or 0.0) > pause.opened_at + CLOCKS]
            assert not late, f"a paused tree starts nothing: {late}"

    @property
    def rounds(self) -> dict[str, RoundRecord]:
        return {round_id: known[max(known)] for round_id, known in self.round_versions.items()}

    def open(self) -> list[RoundRecord]:
        return [each for each in self.rounds.values() if each.end is None]

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

    def of_leg(self, leg_id: str) -> list[JobRecord]:
        """Return every version of a leg's row so far."""
        return [job for known in self.versions.values() for job in known.values() if job.delegation_id == leg_id]

    def kinds(self) -> list[str]:
        """Return the kinds of the events that not every tree has."""
        return [event.kind for event in self.events.values() if event.kind not in STORY]

    def check(self, runs: Sequence[JobRun], bounds: Bounds) -> None:
        """Assert the invariants of a tree that is over."""
        alive = [job for job in self.jobs.values() if not job.state.has_ended]
        assert not alive, f"every job ended: {alive}, {self.task}"
        assert self.task_state not in {TaskState.OPEN, TaskState.AWAITING_HUMAN}
        self._each_round_ended_once()
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

    def _each_round_ended_once(self) -> None:
        """Assert that each round's last row has its end, and that every accepted resume but `extend` ended one."""
        for known in self.round_versions.values():
            ends = [revision for revision, each in known.items() if each.end is not None]
            assert ends == [max(known)], f"a round ends once, and last: {known}"
        self.check_resumes()

    def check_resumes(self) -> None:
        """Assert that exactly one resume ended each round (ruling F4)."""
        accepted = [event for event in self.events.values() if event.kind == "resume_accepted"]
        heard = Counter((event.job_id, event.data["round"]) for event in accepted if event.data["verb"] != "extend")
        assert set(heard.values()) <= {1}, f"one resume ends a round: {heard}"
        people = {"answered", "retried", "continued", "aborted"}
        ended = {(each.coordinator_id, each.number) for each in self.rounds.values() if each.end in people}
        assert set(heard) == ended

    def _each_attempt_ended_once(self) -> None:
        """Assert that each attempt ends once; a skipped leg may wait again and be skipped again."""
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
        for job_id in self.jobs:
            of_job = sorted(
                int(event.event_id.rpartition("-e")[2]) for event in self.events.values() if event.job_id == job_id
            )
            assert of_job == list(range(1, len(of_job) + 1)), "event ids of a job have no gap"


def _timeless(job: JobRecord) -> JobRecord:
    """Drop the times, which differ when a lost workflow task is repeated."""
    return job.model_copy(update={"queued_at": 0.0, "started_at": None, "ended_at": None})


def _of_any_time(event: EventRecord) -> EventRecord:
    """Drop the times: a pause that begins later ends later, and says so."""
    message = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "", event.message)
    timeless = {"expires_at": 0.0, "elapsed": 0.0}
    return event.model_copy(update={"at": 0.0, "message": message, "data": {**event.data, **timeless}})
