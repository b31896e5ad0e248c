"""What a job verifiably did, as one digest (ruling H3): what it only says of itself is left out."""

from workflows.contract.models import Entry, ServiceResult
from workflows.model.digests import digest


def side_effects(
    result: ServiceResult, *, pull_request: int | None, head_tree: str | None, artifact_digest: str | None
) -> str:
    """The same work gives the same digest.

    The head counts by its content: the service makes a commit of its own for every job, so the commit's id would be new
    each time although nothing else is.
    """
    done = [sorted(map(_entry, entries)) for entries in (result.changes_made, result.tests_run)]
    return digest([result.decision.value, *done, pull_request, head_tree, artifact_digest])


def _entry(entry: Entry) -> str:
    if isinstance(entry, str):
        return " ".join(entry.split())
    return digest([[key, str(value)] for key, value in sorted(entry.items())])
