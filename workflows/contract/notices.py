"""What is told about a result that was accepted all the same: the tree makes an event of each."""

from pydantic import BaseModel, ConfigDict


class Notice(BaseModel):
    """Something a job's end has to tell its tree, before the tree gives it an id and a time (ruling B4)."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    kind: str
    message: str
    data: dict[str, str | int | float | bool | list[str] | None] = {}
