"""The page of the service's checks, with the remedy of each fault (ruling M4)."""

from collections.abc import Mapping

from bridge.http.dashboard.frame.page import Action, Asked, Done, Form, Page, done
from bridge.http.dashboard.parts.slow_answers import Background
from bridge.operations.health import doctor
from bridge.operations.health.findings import Finding, Level
from bridge.operations.service import Service

FINDINGS: Background[list[Finding]] = Background(doctor.examine)
_WORST_FIRST = (Level.WRONG, Level.WARNING, Level.OK)


def _look(service: Service, asked: Asked) -> Mapping[str, object]:
    seen = FINDINGS.seen(service)
    findings = sorted(seen.found or (), key=lambda each: _WORST_FIRST.index(each.level))
    return {"title": "Doctor", "seen": seen, "findings": findings, "healthy": doctor.healthy(findings)}


async def _check(service: Service, form: Form) -> Done:
    FINDINGS.begin(service)
    return done("it is being checked")


PAGES = (Page("/doctor", "doctor.html", _look, fresh_seconds=2.0),)
ACTIONS = (Action("/doctor/check", _check),)
