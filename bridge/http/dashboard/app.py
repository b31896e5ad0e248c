"""Serving pages: the session, the token of forms, redirects after actions, errors (rulings M2, M5, M6)."""

import json
import re
from collections.abc import AsyncIterator, Awaitable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Match, Route, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bridge.http.dashboard import web_ui
from bridge.http.dashboard.frame import live, render
from bridge.http.dashboard.frame.live import Live, digest_of
from bridge.http.dashboard.frame.page import (
    CHANNEL,
    ActionNote,
    Done,
    FormAction,
    Notes,
    PageRequest,
    PageView,
    Plain,
    SubmittedForm,
    fields_of,
    nothing_here,
)
from bridge.http.dashboard.frame.session import DashboardSession, Sessions
from bridge.http.dashboard.pages import ACTIONS, PAGES, PLAIN
from bridge.http.dashboard.web_ui import WebUi
from bridge.http.gates.gate import header
from bridge.http.gates.origin import is_own
from bridge.http.gates.rate import Rate
from bridge.http.wire import authorization
from bridge.http.wire.authorization import AgentAt
from bridge.http.wire.call import call_of
from bridge.http.wire.errors import ForbiddenOriginError, RateLimitedError, as_ours
from bridge.http.wire.stream_limit import HeldOpen
from bridge.http.wire.thread_pools import act, read
from bridge.machine.web_ui import PATH
from bridge.operations.service import Service
from workflows.model.errors import ServiceError, UsageError
from workflows.model.orders import signature

PER_MINUTE = 600
"""The rate limit of one session; programs that call the bridge have a limit of their own."""

POLICY = "; ".join(
    (
        "default-src 'none'",
        *(f"{kind}-src 'self'" for kind in ("script", "style", "connect", "img")),
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""With no referrer at all, browsers would omit the origin of a form too."""

Fields = Mapping[str, tuple[str, ...]]
_PLAIN = re.compile(r"/ui/[A-Za-z0-9._/-]*")


class DashboardGate:
    """A gate that routes `/ui` to the dashboard, before the gates of programs, which require the token."""

    def __init__(self, app: ASGIApp, dashboard: ASGIApp) -> None:
        self.app, self._dashboard = app, dashboard

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Return the awaitable of the dashboard, or of the next app; an `async def` would add a step to every call."""
        path = scope.get("path", "")
        mine = path in ("/", "/ui") or path.startswith("/ui/")
        return (self._dashboard if mine else self.app)(scope, receive, send)


def dashboard(service: Service, agent_at: AgentAt, web_ui_at: str = "") -> ASGIApp:
    """Build the dashboard of one service home; `web_ui_at` is where the embedded server's web UI listens."""
    return _Dashboard(service, agent_at, WebUi(web_ui_at))


class _Dashboard:
    def __init__(self, service: Service, agent_at: AgentAt, temporal: WebUi) -> None:
        self._service, self._agent_at, self._temporal = service, agent_at, temporal
        self._temporal_rate = Rate(web_ui.PER_MINUTE)
        self._sessions, self._rate, self._notes = Sessions(service), Rate(PER_MINUTE), Notes()
        self._live, self._held = Live(service, self._inner), HeldOpen(2 * live.MOST)
        self._router = Router(
            [
                Route("/", self._home),
                Route("/ui", self._home),
                Route("/ui/enter", self._enter),
                Route("/ui/static/{digest}/{name}", self._static),
                Route("/ui/leave", self._leave, methods=["POST"]),
                *(Route(path, self._web_ui, methods=web_ui.METHODS) for path in (PATH, f"{PATH}/{{rest:path}}")),
                *(Route(f"/ui/live{page.path}", partial(self._stream, page)) for page in PAGES),
                *(Route(f"/ui{page.path}", partial(self._show, page)) for page in PAGES),
                *(Route(f"/ui{plain.path}", partial(self._send, plain)) for plain in PLAIN),
                *(Route(f"/ui{action.path}", partial(self._carry_out, action), methods=["POST"]) for action in ACTIONS),
            ],
            redirect_slashes=False,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                there = {name for name, _ in message["headers"]}
                more = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *(pair for pair in more if pair[0] not in there)]
            await send(message)

        try:
            await self._router(scope, receive, sending)
        except Exception as raised:
            error = as_ours(raised, scope)
            call_of(scope).code = error.code
            session = self._sessions.of(scope)
            await self._answer_error(session, error)(scope, receive, sending)

    # Ways in and out

    async def _home(self, request: Request) -> Response:
        return RedirectResponse("/ui/", 303)

    async def _enter(self, request: Request) -> Response:
        """Begin a session by a one-time link, and redirect to its target, which must be a page of the dashboard."""
        to = _ours(request.query_params.get("to", ""))
        cookie = await read(self._sessions.begin, request.query_params.get("code", ""))
        if cookie is not None:
            return RedirectResponse(to, 303, {"set-cookie": cookie})
        if self._session(request) is not None:  # opened here before: the session may see it
            return RedirectResponse(to, 303)
        return self._stranger(request, "This link was opened before, or is older than five minutes.", to)

    async def _leave(self, request: Request) -> Response:
        await self._form(request)
        gone = f"{self._sessions.cookie}=; Path=/ui; Max-Age=0; HttpOnly; SameSite=Strict"
        return RedirectResponse("/ui/", 303, {"set-cookie": gone})

    def _stranger(self, request: Request, why: str, to: str = "") -> Response:
        """Render the login page for a request without a session, with a link back to the requested page.

        A link from another site comes without the cookie, so the page requests itself once more.
        """
        call_of(request.scope).code = "unauthorized"
        to = to or f"{quote(request.scope['path'])}{'?' if request.url.query else ''}{request.url.query}"
        cross = request.headers.get("sec-fetch-site") == "cross-site" and request.url.path != "/ui/enter"
        return HTMLResponse(_for_strangers(why, to, again=cross and request.method == "GET"), 401)

    async def _static(self, request: Request) -> Response:
        name = request.path_params["name"]
        path = render.STATIC / name
        kind = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}.get(path.suffix)
        if kind is None or path.parent != render.STATIC or render.asset(name) != request.url.path:
            raise nothing_here(request.url.path)
        return Response(
            path.read_bytes(), 200, {"cache-control": "max-age=31536000, immutable"}, f"{kind}; charset=utf-8"
        )

    # Pages

    async def _show(self, page: PageView, request: Request) -> Response:
        session = self._session(request)
        if session is None:
            return self._stranger(request, "There is no session in this browser, or it is over.")
        asked = _page_request(request, session)
        await self._live.watch.refresh()
        notes = self._notes.take(session.key, asked.query.get("said", ""))
        asked = replace(asked, query=_without(asked.query, "said"))
        html, status = await read(self._whole, page, asked, notes)
        return HTMLResponse(html, status)

    async def _send(self, plain: Plain, request: Request) -> Response:
        """Send a plain text as it is made; browsers show it, and take it for nothing else."""
        session = self._session(request)
        if session is None:
            return self._stranger(request, "There is no session in this browser, or it is over.")
        pieces = plain.pieces(self._service, _page_request(request, session))
        first = await read(next, pieces, b"")

        async def body() -> AsyncIterator[bytes]:
            piece = first
            while piece:
                yield piece
                piece = await read(next, pieces, b"")

        return StreamingResponse(body(), media_type="text/plain; charset=utf-8")

    async def _stream(self, page: PageView, request: Request) -> Response:
        session = self._session(request)
        if session is None:
            return HTMLResponse("", 401)
        asked = _page_request(request, session)
        seen = request.headers.get("last-event-id") or asked.query.get("seen")
        path = asked.path.replace("/ui/live", "/ui", 1)
        asked = replace(asked, path=path, query=_without(asked.query, "seen"))
        body = self._live.stream(
            page,
            asked,
            seen,
            describe=lambda error: _sentence(as_ours(error, request.scope)),
            goes_on=lambda: self._sessions.of(request.scope) is not None,
        )
        return self._held.stream(request.scope, body)

    async def _web_ui(self, request: Request) -> Response:
        session = self._session(request, self._temporal_rate)
        if session is None:
            return self._stranger(request, "There is no session in this browser, or it is over.")
        if request.method != "GET":
            self._require_own_page(request)
            await authorization.refuse_agents(self._service, self._agent_at, request.scope, f"{request.method} {PATH}")
        answer = await self._temporal.answer(request)
        if self._sessions.of(request.scope) is None:  # it may have ended while the program waited for news
            return self._stranger(request, "The session is over.")
        return answer

    async def _carry_out(self, action: FormAction, request: Request) -> Response:
        """Carry out a form: redirect after success; on a refusal show the page at once, with the typed text."""
        form = await self._form(request)
        await authorization.refuse_agents(self._service, self._agent_at, request.scope, f"POST /ui{action.path}")
        try:
            outcome = await act(partial(action.act, self._service, form))
        except ServiceError as error:
            outcome = Done((ActionNote.of(error),), status=error.status)
        await self._live.watch.recount()
        show = _ours(outcome.show or form.text("from", "/ui/"))
        if not outcome.is_refusal:
            name = self._notes.keep(form.asked.session.key, outcome.notes)
            parts = urlsplit(show)
            query = urlencode([*parse_qsl(parts.query), ("said", name)])
            return RedirectResponse(f"{parts.path}?{query}", 303)
        page, asked = self._page_at(show, form.asked.session)
        html, _ = await read(self._whole, page, asked, outcome.notes, form.fields)
        return HTMLResponse(html, outcome.status)

    def _page_at(self, path: str, session: DashboardSession) -> tuple[PageView, PageRequest]:
        """Return the page at a path."""
        parts = urlsplit(path)
        scope = {"type": "http", "method": "GET", "path": parts.path, "root_path": "", "headers": []}
        for page in PAGES:
            match, child = Route(f"/ui{page.path}", self._home).matches(scope)
            if match is Match.FULL:
                query = dict(parse_qsl(parts.query))
                return page, PageRequest(parts.path, session, child["path_params"], _without(query, "said"))
        raise nothing_here(parts.path)

    async def _form(self, request: Request) -> SubmittedForm:
        """Read a form, and check that a page of the dashboard sent it in this session."""
        session = self._session(request)
        if session is None:
            raise UsageError("the session is over; nothing was done", "service dashboard")
        self._require_own_page(request)
        form = SubmittedForm(_page_request(request, session), await fields_of(request))
        if form.text("token", "") != session.form_token:
            raise ForbiddenOriginError("the form is from another session; load the page again")
        return form

    def _require_own_page(self, request: Request) -> None:
        origin, host = header(request.scope, b"origin"), header(request.scope, b"host") or ""
        if origin is None or not is_own(origin, host, self._service.settings.bridge.url):
            raise ForbiddenOriginError("a form must be sent by a page of the dashboard itself")

    def _session(self, request: Request, rate: Rate | None = None) -> DashboardSession | None:
        session = self._sessions.of(request.scope)
        call = call_of(request.scope)
        call.caller = f"session {session.key}" if session else ""
        call.by = signature(session.actor, CHANNEL) if session else ""
        if session is not None and not request.url.path.startswith("/ui/live/"):
            (rate or self._rate).count(session.key)
        return session

    # What is sent

    def _values(self, page: PageView, asked: PageRequest) -> dict[str, object]:
        """Return all values for a page's template. Call this in a thread."""
        around = {
            "here": _here(asked),
            "session": asked.session,
            "typed": asked.typed,
            "gone": self._live.watch.outages,
        }
        around |= {
            "waiting": self._live.watch.waiting,
            "live": not page.fields,
            "faults": {},
            "sent": {},
            "status": 200,
        }
        around["program_name"] = self._service.settings.program_name
        return around | dict(page.look(self._service, asked))

    def _inner(self, page: PageView, asked: PageRequest) -> str:
        """Render the content of the page's `main` element."""
        return render.render_template(page.template, self._values(page, asked))

    def _whole(
        self, page: PageView, asked: PageRequest, notes: tuple[ActionNote, ...], sent: Fields = MappingProxyType({})
    ) -> tuple[str, int]:
        """Render a page with the outcome of a form: a fault stands beside its field if the page has it.

        The status is that of the page's own values: a search that can't be understood is no success.
        """
        values = self._values(page, replace(asked, typed={name: fields[-1] for name, fields in sent.items()}))
        faults = {note.argument: note for note in notes if note.argument in page.fields}
        inner = render.render_template(page.template, values | {"faults": faults, "sent": sent})
        html = _frame(inner, values | {"notes": [note for note in notes if note not in faults.values()]})
        status = values["status"]
        assert isinstance(status, int)
        return html, status

    def _answer_error(self, session: DashboardSession | None, error: ServiceError) -> Response:
        """Answer a script's form with the error's sentence, which the script shows beside the typed text."""
        headers = {"hx-reswap": "none", "hx-trigger": json.dumps({"trouble": _sentence(error)})}
        if isinstance(error, RateLimitedError):
            headers |= error.headers
        if session is None:
            html = _for_strangers(error.message)
        else:
            inner = render.render_template("error.html", {"error": error})
            html = _frame(inner, {"session": session, "title": error.message, "waiting": self._live.watch.waiting})
        return HTMLResponse(html, error.status, headers)


def _sentence(error: ServiceError) -> str:
    return f"{error.message} Try: {error.hint}" if error.hint else error.message


def _frame(inner: str, values: Mapping[str, object]) -> str:
    """Render the frame around `main`. A page without an address does not change while it is open."""
    around = {"here": "", "notes": (), "live": True} | dict(values)
    return render.render_template("base.html", around | {"inner": Markup(inner), "seen": digest_of(inner)})  # noqa: S704


def _for_strangers(why: str, to: str = "", *, again: bool = False) -> str:
    """Render the login page; it shows the command only if the address needs no quoting in a shell."""
    command = f"service dashboard {to}" if to != "/ui/" and _PLAIN.fullmatch(to) else "service dashboard"
    values = {"why": why, "back": "" if to == "/ui/" else to, "command": command, "again": to if again else ""}
    return render.render_template("stranger.html", values)


def _page_request(request: Request, session: DashboardSession) -> PageRequest:
    query = dict(request.query_params)
    if any("\0" in value for value in (*query.values(), *request.path_params.values())):
        raise UsageError("the address holds U+0000")
    return PageRequest(request.url.path, session, request.path_params, query)


def _without(query: Mapping[str, str], name: str) -> dict[str, str]:
    return {key: value for key, value in query.items() if key != name}


def _here(asked: PageRequest) -> str:
    """Return the address of a page with its query, for the page's forms and its event stream."""
    query = urlencode([*asked.query.items()])
    return f"{quote(asked.path)}{'?' if query else ''}{query}"


def _ours(address: str) -> str:
    """Return the address if it is on this dashboard, else the address of the first page."""
    parts = urlsplit(address)
    ours = not parts.scheme and not parts.netloc and parts.path.startswith("/ui/") and "\\" not in address
    return address if ours else "/ui/"
