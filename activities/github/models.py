"""GitHub's answers, with only the fields that are needed; others are ignored."""

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict


class GithubAnswer(BaseModel):
    """The base of answers. Frozen; null text becomes empty."""

    model_config = ConfigDict(frozen=True, extra="ignore")


def _seconds(value: object) -> object:
    return datetime.fromisoformat(value).timestamp() if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(lambda value: value or "")]
Time = Annotated[float, BeforeValidator(_seconds)]


class Person(GithubAnswer):
    """Somebody with an account; a deleted account is empty."""

    login: str = ""
    id: int = 0
    type: str = "User"


Somebody = Annotated[Person, BeforeValidator(lambda value: value or Person())]


class IssueComment(GithubAnswer):
    """A comment in the conversation of an issue or a pull request."""

    id: int
    body: Text = ""
    user: Somebody = Person()
    created_at: Time
    updated_at: Time
    html_url: str = ""
    issue_url: str = ""

    @property
    def number(self) -> int:
        """Return the number of its issue or pull request."""
        last = self.issue_url.rpartition("/")[2]
        return int(last) if last.isdigit() else 0


class Ref(GithubAnswer):
    """A branch: its name, commit and repository (None if the repository was deleted)."""

    ref: str
    sha: str
    repo: "Repository | None" = None


class Pull(GithubAnswer):
    """A pull request."""

    number: int
    state: str
    draft: bool = False
    merged: bool = False
    merged_at: Text = ""
    """Time of the merge; empty if it was not merged."""
    title: Text = ""
    body: Text = ""
    node_id: str = ""
    html_url: str = ""
    head: Ref
    base: Ref


class Issue(GithubAnswer):
    """An issue or a pull request, with the fields that both have."""

    number: int
    state: str
    title: Text = ""
    body: Text = ""
    html_url: str = ""
    locked: bool = False
    pull_request: dict[str, object] | None = None


class Repository(GithubAnswer):
    """A repository, and the account's permissions there."""

    full_name: str = ""
    default_branch: str = ""
    html_url: str = ""
    permissions: dict[str, bool] = {}


class Reaction(GithubAnswer):
    """A reaction to a comment."""

    id: int
    content: str = ""


class CheckOutput(GithubAnswer):
    """The output of a check."""

    annotations_count: int = 0


class CheckRun(GithubAnswer):
    """A check on a commit."""

    id: int
    name: str = ""
    head_sha: str = ""
    status: str = ""
    conclusion: str | None = None
    external_id: Text = ""
    html_url: Text = ""
    output: CheckOutput = CheckOutput()


class CheckRuns(GithubAnswer):
    """The checks on a commit."""

    check_runs: tuple[CheckRun, ...] = ()


class RateLimit(GithubAnswer):
    """The remaining requests of this hour."""

    limit: int = 0
    remaining: int = 0
    reset: float = 0


class Branch(GithubAnswer):
    """A branch of a repository."""

    name: str = ""
    protected: bool = False


class Resources(GithubAnswer):
    """The quotas of GitHub's interfaces; the service uses the first one."""

    core: RateLimit


class RateLimits(GithubAnswer):
    """All quotas."""

    resources: Resources


class GitObject(GithubAnswer):
    """The object of a reference."""

    sha: str


class GitRef(GithubAnswer):
    """A reference by its full name."""

    ref: str
    object: GitObject


Ref.model_rebuild()
