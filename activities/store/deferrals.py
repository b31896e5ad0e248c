"""Tries of a run that were deferred until its program can work again."""

from dataclasses import asdict, dataclass

from sqlalchemy import ColumnElement, Engine, or_, select

from activities.store import schema
from activities.store.database import insert_new
from workflows.model.spend import Usage


@dataclass(frozen=True)
class Deferral:
    """A try that met a limit or had no network, and the time of the next one."""

    job_id: str
    attempt: int
    number: int
    runtime: str
    kind: str
    message: str
    at: float
    until: float
    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def usage(self) -> Usage:
        """Return the tokens the try used before it was cut short."""
        return Usage(input_tokens=self.input_tokens, output_tokens=self.output_tokens)


def add(engine: Engine, deferral: Deferral) -> None:
    """Record a deferral; the first record of its number is final."""
    with engine.begin() as connection:
        insert_new(connection, schema.deferrals, [asdict(deferral)])


def of_run(engine: Engine, job_id: str, attempt: int) -> tuple[Deferral, ...]:
    """Return every deferral of an attempt, oldest first."""
    return _find(engine, (schema.deferrals.c.job_id == job_id) & (schema.deferrals.c.attempt == attempt))


def of_job(engine: Engine, job_id: str) -> tuple[Deferral, ...]:
    """Return every deferral of a job; for a root, of its whole tree."""
    column = schema.deferrals.c.job_id
    return _find(engine, or_(column == job_id, column.startswith(f"{job_id}.", autoescape=True)))


def _find(engine: Engine, which: ColumnElement[bool]) -> tuple[Deferral, ...]:
    query = select(schema.deferrals).where(which).order_by(schema.deferrals.c.at, schema.deferrals.c.number)
    with engine.connect() as connection:
        return tuple(Deferral(**row._mapping) for row in connection.execute(query))
