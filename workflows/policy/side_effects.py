"""A job's verifiable effects, as one digest (ruling H3); its claims about itself are left out."""

from workflows.contract.models import Entry, ServiceResult
from workflows.text.digests import digest


def side_effects(
    result: ServiceResult, *, pull_request: int | None, head_sha: str | None, artifact_digest: str | None
) -> str:
    """Return a digest that a job without new work does not change.

    The pull request is the job's own, if it has one. A job that begins from the line without changing it makes no
    commit.
    """
    done = [sorted(map(_entry, entries)) for entries in (result.changes_made, result.tests_run)]
    return digest([result.decision.value, *done, pull_request, head_sha, artifact_digest])


def _entry(entry: Entry) -> str:
    if isinstance(entry, str):
        return " ".join(entry.split())
    return digest([[key, str(value)] for key, value in sorted(entry.items())])
