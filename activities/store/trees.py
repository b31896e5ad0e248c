"""The states of closed trees that an operator may re-open (ruling D4)."""

from sqlalchemy import Engine, select

from activities.store import schema
from activities.store.database import upsert
from workflows.tree.state import TreeState


def put(engine: Engine, state: TreeState) -> None:
    row = {"root_job_id": state.root_id, "revision": state.revision, "state": state.model_dump(mode="json")}
    with engine.begin() as connection:
        upsert(connection, schema.trees, [row], only_if_newer="revision")


def get(engine: Engine, root_job_id: str) -> TreeState | None:
    with engine.connect() as connection:
        found = connection.execute(
            select(schema.trees.c.state).where(schema.trees.c.root_job_id == root_job_id)
        ).scalar()
    return TreeState.model_validate(found) if found else None
