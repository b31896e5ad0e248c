"""The exit codes of the command line, with their meaning in general and for single commands (ruling K6)."""

from workflows.model.errors import NotFoundError, RefusedError, ServiceError, UnreachableError, UsageError

INTERRUPTED = 130
"""The exit code after Ctrl-C, as in shells."""

EXIT_CODES = {
    0: "done",
    ServiceError.exit_code: "failed",
    UsageError.exit_code: "typed wrongly",
    RefusedError.exit_code: "refused",
    NotFoundError.exit_code: "not found",
    UnreachableError.exit_code: "the service, Temporal or the store cannot be reached",
    INTERRUPTED: "ended by Ctrl-C",
}
_OWN_CODES = {
    "cluster init": {3: "something has to be done by hand"},
    "daemon status": {1: "nothing runs"},
    "doctor": {1: "something is wrong"},
    "gc": {1: "something could not be removed"},
    "init": {3: "refused, or something has to be done by hand on the Temporal server"},
    "job gate": {3: "not ready to be merged"},
    "result check": {1: "the result has faults"},
    "result render": {1: "the result has faults"},
    "runtime check": {1: "no runtime works"},
}
_WAITED = {1: "failed, or with --wait: the work did not succeed"}


def meanings(command: str, *, waits: bool) -> dict[int, str]:
    """Return what each exit code means for a command; `waits` says whether it has the option `--wait`."""
    return EXIT_CODES | (_WAITED if waits else {}) | _OWN_CODES.get(command, {})
