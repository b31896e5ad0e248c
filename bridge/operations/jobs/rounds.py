"""Reading rounds: which are open, and how past ones ended (rulings F1, F4)."""

from activities.store import round_rows
from bridge.operations.jobs import jobs
from bridge.operations.service import Service
from workflows.model.errors import NotFoundError
from workflows.model.rounds import last_words
from workflows.model.rows import RoundRecord


def open_of(service: Service, root: str) -> list[RoundRecord]:
    """Return the open rounds of a tree, the oldest first."""
    return round_rows.open_rounds(service.store, root=root)


def of_tree(service: Service, root: str) -> list[RoundRecord]:
    """Return all rounds of a tree, the oldest first."""
    return round_rows.of_tree(service.store, root)


def get_open(service: Service, job_id: str) -> RoundRecord:
    """Return the open round that this job id stands for; raise if there is none, or if there are several."""
    root = jobs.get(service, job_id).root_job_id
    mine = meant_by(job_id, open_of(service, root))
    if len(mine) == 1:
        return mine[0]
    if not mine:
        over = end_in_words(service, root, job_id)
        nothing = f"nothing in the task {root} needs you"
        raise NotFoundError(f"{nothing}; {over}" if over else nothing, f"service job tree {root}")
    names = ", ".join(each.coordinator_id for each in mine)
    raise NotFoundError(f"several jobs of the task {root} wait: {names}", "service attention")


def meant_by(job_id: str, rounds: list[RoundRecord]) -> list[RoundRecord]:
    """Return the rounds of exactly this job; if it has none, all of them, because any job id may stand for its tree."""
    return [each for each in rounds if job_id in (each.coordinator_id, each.job_id)] or rounds


def end_in_words(service: Service, root: str, job_id: str, number: int | None = None) -> str:
    """Return a sentence on how a round ended: round `number` of the job, else its last, else the tree's last."""
    mine = meant_by(job_id, [each for each in round_rows.of_tree(service.store, root) if each.end is not None])
    meant = [each for each in mine if each.number == number] or mine
    if not meant:
        return ""
    last = max(meant, key=lambda row: row.closed_at or 0.0)
    return last_words(last.coordinator_id, last.number, last.closed)


def past_round(service: Service, job_id: str, number: int) -> RoundRecord | None:
    """Return the round with this number that the job itself opened, not another job of its tree."""
    rounds = round_rows.of_tree(service.store, jobs.get(service, job_id).root_job_id)
    mine = (each for each in rounds if each.coordinator_id == job_id and each.number == number)
    return next((each for each in mine if each.end is not None), None)
