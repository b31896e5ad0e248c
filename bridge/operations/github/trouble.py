"""Problems with GitHub that need a person: failed writes, and an account that is refused."""

from collections.abc import Collection
from dataclasses import dataclass

from activities.store.github import account, facts
from activities.store.github.facts import FactRow
from activities.store.waiting import ACCOUNT
from bridge.operations.service import Service
from workflows.text.durations import clock

STATUS = "service github status"


@dataclass(frozen=True)
class Trouble:
    """A problem of one pull request or issue, or of the account."""

    about: str
    """OWNER/NAME#NUMBER, OWNER/NAME alone where nothing has a number yet, or `account`."""
    says: str
    next: tuple[str, ...]
    root_job_id: str = ""
    facts: tuple[str, ...] = ()


def of_keys(service: Service, keys: Collection[str]) -> dict[str, Trouble]:
    """Return those of the problems that have these keys: `OWNER/NAME#NUMBER`, or the account's."""
    found: dict[str, list[FactRow]] = {}
    for each in facts.failed(service.store):
        found.setdefault(f"{each.github}#{each.number}", []).append(each)
    made = {key: _unwritten(rows) for key, rows in found.items() if key in keys}
    return made | ({ACCOUNT: _unreached(service)} if ACCOUNT in keys else {})


def _unwritten(rows: list[FactRow]) -> Trouble:
    whys = list(dict.fromkeys(each.error for each in rows))
    kinds = ", ".join(sorted({each.kind for each in rows}))
    more = f" (and {len(whys) - 1} other reasons)" if len(whys) > 1 else ""
    says = f"{kinds} could not be written on {rows[0].where}: {whys[0]}{more}"
    github = rows[0].github
    ways = (STATUS, f"service github sync {github} --retry", f"service github sync {github} --drop")
    return Trouble(rows[0].where, says, ways, rows[0].root_job_id, tuple(each.fact_id for each in rows))


def _unreached(service: Service) -> Trouble:
    known = account.read(service.store)
    since = clock(known.failing_since) if known.failing_since else "a while"
    ways = ("service doctor", "service github sync") if known.refused else (STATUS, "service doctor")
    return Trouble(ACCOUNT, f"{known.problem or 'GitHub gives no answer'}; since {since}", ways)
