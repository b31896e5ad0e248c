"""The bridge as an application: the gates in the order of ruling J2, then the routes."""

import os

from fastapi import FastAPI
from starlette.types import ASGIApp, Scope

from activities.sealing.payload_seals import PayloadSeals
from bridge.http.dashboard.app import DashboardGate, dashboard
from bridge.http.dashboard.frame.session import Sessions
from bridge.http.gates import audit
from bridge.http.gates.audit import AuditGate, AuditLog, Strangers
from bridge.http.gates.auth import AuthGate
from bridge.http.gates.codec import CodecGate
from bridge.http.gates.hosts import HostGate
from bridge.http.gates.join import JoinGate
from bridge.http.gates.origin import OriginGate
from bridge.http.gates.rate import MESSAGES, Rate, RateGate
from bridge.http.gates.size import FramingGate, SizeGate
from bridge.http.gates.webhook import SIGNED, STRANGERS, WebhookGate
from bridge.http.mcp import gate
from bridge.http.routes import agents, branches, github, health, hosts, jobs, memory, metrics, pipelines, reviews
from bridge.http.routes.health import Readiness
from bridge.http.wire import document, refusals, stream_limit
from bridge.http.wire.authorization import AgentAt, no_agent
from bridge.http.wire.stream_limit import HeldOpen
from bridge.machine import token
from bridge.operations.access import tokens
from bridge.operations.github import polling
from bridge.operations.health.metrics import Metrics
from bridge.operations.service import Service

DESCRIPTION = "Starts work, reads its state, carries people's decisions to it. The same operations as the command line."


def create_app(service: Service, agent_at: AgentAt = no_agent, web_ui_at: str = "") -> FastAPI:
    """Build the bridge of one service home; `agent_at` returns the agent at the other end of a connection."""
    app = FastAPI(
        title="delegation service",
        version="1",
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.service, app.state.agent_at, app.state.held = service, agent_at, HeldOpen(stream_limit.MOST)
    app.state.readiness, app.state.metrics = Readiness(service), Metrics(service)
    secret = polling.secret(service, os.environ)
    for noun in (health, metrics, jobs, branches, agents, pipelines, memory, reviews, *((github,) if secret else ())):
        app.routes.extend(noun.router.routes)  # `include_router` would analyse all endpoints again, for each app
    refusals.install(app)
    _add_gates(app, service, secret, dashboard(service, agent_at, web_ui_at))
    app.openapi = lambda: document.document(app)  # type: ignore[method-assign]
    return app


def _add_gates(app: FastAPI, service: Service, webhook_secret: str, pages: ASGIApp) -> None:
    """Wrap the app in the gates; each wraps those before it, so a request meets the last one first."""
    settings = service.settings.bridge
    app.add_middleware(gate.McpGate, service=service)
    app.add_middleware(SizeGate)
    app.state.rate, messages = Rate(settings.requests_per_minute), Rate(MESSAGES * settings.requests_per_minute)
    app.add_middleware(RateGate, rate=app.state.rate, messages=messages)
    strangers = Rate(settings.requests_per_minute)
    own, named = token.Token(token.ensure(service.home)), tokens.lookup(service)
    app.add_middleware(AuthGate, token=own, named=named, rate=strangers)
    app.add_middleware(JoinGate, service=service, strangers=strangers)
    app.add_middleware(HostGate, service=service, answers=hosts.host_app(service), strangers=strangers)
    app.add_middleware(DashboardGate, dashboard=pages)
    app.add_middleware(OriginGate, allowed_hosts=settings.allowed_hosts, url=settings.url)
    if service.settings.temporal.encrypt:
        _add_codec(app, service, own, named)
    deliveries = {"rate": Rate(SIGNED), "strangers": Rate(STRANGERS)}
    app.add_middleware(WebhookGate, secret=webhook_secret, **deliveries)
    app.add_middleware(FramingGate)
    strangers_log = Strangers(AuditLog(service.home.strangers), Rate(audit.STRANGERS))
    routes = [*app.routes, *hosts.router.routes, gate.ROUTE]
    app.add_middleware(AuditGate, log_file=AuditLog(service.home.audit), strangers=strangers_log, routes=routes)


def _add_codec(app: FastAPI, service: Service, own: token.Token, named: tokens.Tokens) -> None:
    """Add the codec endpoint, for pages of Temporal's web UI and for programs that show the token."""
    settings, sessions = service.settings.bridge, Sessions(service)

    def session(scope: Scope) -> str | None:
        current = sessions.of(scope)
        return current.key if current else None

    app.add_middleware(
        CodecGate,
        seals=PayloadSeals.of_home(service.home.root, encrypt=True),
        hosts=OriginGate(app, settings.allowed_hosts, settings.url),
        auth=AuthGate(app, own, named, Rate(settings.requests_per_minute)),
        page=service.settings.temporal.web_ui,
        url=settings.url,
        session=session,
    )
