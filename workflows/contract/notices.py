"""Notices about an accepted result: the tree makes an event of each."""

from pydantic import BaseModel, ConfigDict


class Notice(BaseModel):
    """A notice of a job's end for its tree, before the tree gives it an id and a time (ruling B4)."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    kind: str
    message: str
    data: dict[str, str | int | float | bool | list[str] | None] = {}
