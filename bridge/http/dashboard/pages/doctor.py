"""The page of the service's checks, with the remedy of each fault (ruling M4)."""

from collections.abc import Mapping

from bridge.http.dashboard.frame.page import Done, FormAction, PageRequest, PageView, SubmittedForm, success
from bridge.http.dashboard.parts.slow_answers import Background
from bridge.operations.health import doctor
from bridge.operations.health.findings import Finding, Level
from bridge.operations.service import Service

FINDINGS: Background[list[Finding]] = Background(doctor.examine)
_WORST_FIRST = (Level.WRONG, Level.WARNING, Level.OK)


def _look(service: Service, asked: PageRequest) -> Mapping[str, object]:
    seen = FINDINGS.last_check(service)
    findings = sorted(seen.answer or (), key=lambda finding: _WORST_FIRST.index(finding.level))
    return {"title": "Doctor", "seen": seen, "findings": findings, "healthy": doctor.healthy(findings)}


async def _check(service: Service, form: SubmittedForm) -> Done:
    FINDINGS.begin(service)
    return success("it is being checked")


PAGES = (PageView("/doctor", "doctor.html", _look, fresh_seconds=2.0),)
ACTIONS = (FormAction("/doctor/check", _check),)
