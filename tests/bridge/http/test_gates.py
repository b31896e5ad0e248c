"""The checks before every route: their order, and each gate at its boundary."""

import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial

import httpx
import pytest

from activities.settings.home import Home
from activities.store.registry import host_rows
from bridge.http.gates.rate import MOST_CALLERS, Rate
from bridge.http.gates.size import GENERAL, PIPELINE_RUN
from bridge.http.routes import health
from bridge.machine import token
from bridge.operations.service import Service
from tests.bridge.conftest import Live, bearer
from tests.bridge.http.conftest import BASE, NO_TEMPORAL, caller
from tests.waiting import until

ASK = "/v1/agents/scout/ask"
RUN = "/v1/pipelines/nightly/run"
JSON = {"Content-Type": "application/json"}
FOREIGN = {"Host": "evil.example"}


@pytest.fixture
def limited(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """Create a service with default limits, and a frozen clock: on a busy machine buckets would refill meanwhile."""
    monkeypatch.setattr("bridge.http.app.Rate", partial(Rate, clock=lambda: 100.0))
    home.config.write_text(NO_TEMPORAL)
    made = Service(home)
    yield made
    made.store.dispose()


def spaces(size: int) -> bytes:
    """Return a JSON object of so many bytes."""
    return b"{" + b" " * (size - 2) + b"}"


async def in_chunks(size: int, chunk: int = 4096) -> AsyncIterator[bytes]:
    whole = spaces(size)
    for start in range(0, size, chunk):
        yield whole[start : start + chunk]


@pytest.mark.ruling("J1")
class TestErrors:
    @pytest.mark.parametrize(
        ("method", "path", "sent", "status", "code"),
        [
            ("GET", "/v1/jobs/nonsense", {}, 400, "usage"),
            ("GET", "/v1/jobs?limit=many", {}, 400, "invalid_request"),
            ("GET", "/v1/jobs", {"headers": {"Authorization": ""}}, 401, "unauthorized"),
            ("GET", "/v1/jobs", {"headers": {"Authorization": "Bearer wrong"}}, 401, "unauthorized"),
            ("GET", "/v1/jobs", {"headers": {"Authorization": "Basic eDp5"}}, 401, "unauthorized"),
            ("GET", "/v1/jobs", {"headers": FOREIGN}, 403, "forbidden_host"),
            ("GET", "/v1/jobs", {"headers": {"Origin": "http://evil.example"}}, 403, "forbidden_origin"),
            ("GET", "/v1/jobs/job-0123456789ab", {}, 404, "not_found"),
            ("GET", "/nothing/here", {}, 404, "not_found"),
            ("GET", "/v1/jobs/", {}, 404, "not_found"),
            ("DELETE", "/v1/jobs", {}, 405, "method_not_allowed"),
            ("POST", ASK, {"content": b"x", "headers": {"Content-Type": "text/plain"}}, 415, "not_json"),
            ("POST", ASK, {"content": spaces(GENERAL + 1), "headers": JSON}, 413, "too_large"),
        ],
    )
    async def test_every_status_has_the_one_shape(
        self, call: httpx.AsyncClient, method: str, path: str, sent: dict[str, object], status: int, code: str
    ) -> None:
        answer = await call.request(method, path, **sent)  # type: ignore[arg-type]
        assert answer.status_code == status, answer.text
        body = answer.json()
        assert set(body) == {"error", "code", "request_id"}
        assert body["code"] == code
        assert body["request_id"] == answer.headers["X-Request-Id"]

    async def test_a_fault_of_ours_tells_nothing_of_itself(
        self, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(*_: object) -> None:
            raise ZeroDivisionError("the secret of the house")

        monkeypatch.setattr("bridge.http.wire.projections.tree", broken)
        async with caller(service) as client:
            answer = await client.get("/v1/jobs/job-0123456789ab/tree")
        assert answer.status_code == 500
        assert set(answer.json()) == {"error", "code", "request_id"}
        assert "secret" not in answer.text

    async def test_statuses_say_what_http_wants_them_to(self, call: httpx.AsyncClient) -> None:
        refused = await call.get("/v1/jobs", headers={"Authorization": "Bearer wrong"})
        assert refused.headers["WWW-Authenticate"] == "Bearer"
        assert (await call.put("/v1/jobs")).headers["Allow"] == "GET"

    def test_a_wrong_token_is_refused_before_the_body_is_read(self, live: Live) -> None:
        with socket.create_connection((live.address.host, live.address.port), timeout=5) as line:
            line.sendall(
                b"POST /v1/agents/scout/ask HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer x\r\n"
                b"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
            )
            assert line.recv(12) == b"HTTP/1.1 401"

    def test_nobody_is_asked_to_go_on_who_will_be_refused(self, live: Live) -> None:
        with socket.create_connection((live.address.host, live.address.port), timeout=5) as line:
            line.sendall(
                b"POST /v1/agents/scout/ask HTTP/1.1\r\nHost: 127.0.0.1\r\nExpect: 100-continue\r\n"
                b"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
            )
            received = b"".join(iter(lambda: line.recv(4096), b""))
        assert received.startswith(b"HTTP/1.1 401")
        assert b"100 Continue" not in received

    def test_what_is_no_http_is_answered_in_the_same_shape(self, live: Live) -> None:
        with socket.create_connection((live.address.host, live.address.port), timeout=5) as line:
            line.sendall(b"garbage\r\n\r\n")
            received = b"".join(iter(lambda: line.recv(4096), b""))
        assert received.startswith(b"HTTP/1.1 400")
        assert b'"code": "invalid_http"' in received


@pytest.mark.ruling("J2")
async def test_the_gates_stand_in_their_order(limited: Service) -> None:
    """Faults are removed one by one; the refusing gate is always the next."""
    async with caller(limited) as client:
        wrong = {"Authorization": "Bearer wrong"}
        large = spaces(GENERAL + 1)
        assert (await client.post("/nowhere", headers=FOREIGN | wrong, content=large)).status_code == 403
        assert (await client.post("/nowhere", headers=wrong, content=large)).status_code == 401
        assert (await client.post("/nowhere", content=large)).status_code == 413
        assert (await client.post("/nowhere")).status_code == 404
        for _ in range(28):
            await client.get("/v1/jobs")
        assert (await client.post("/nowhere", content=large)).status_code == 429
        assert (await client.post("/nowhere", headers=wrong)).status_code == 401, "counted by address, not by token"
        assert (await client.post("/nowhere", headers=FOREIGN)).status_code == 403
    audited = [*limited.home.audit.open(), *limited.home.strangers.open()]
    assert len(audited) == 35, "the audit stands around all of them"


@pytest.mark.ruling("J2")
class TestRate:
    async def test_thirty_are_taken_and_the_next_is_told_when_to_come_again(self, limited: Service) -> None:
        async with caller(limited) as client:
            answers = [await client.get("/v1/jobs") for _ in range(31)]
            assert [answer.status_code for answer in answers] == [200] * 30 + [429]
            assert answers[-1].headers["Retry-After"] in {"1", "2"}
            assert answers[-1].json()["code"] == "rate_limited"
            assert (await client.get("/healthz")).status_code == 200, "free"

    async def test_who_guesses_is_counted_by_address_and_slows_nobody_else(self, limited: Service) -> None:
        async with caller(limited, Authorization="Bearer guess") as client:
            answers = [(await client.get("/v1/jobs")).status_code for _ in range(31)]
            assert answers == [401] * 30 + [429]
            assert (await client.get("/v1/jobs", headers=bearer(limited))).status_code == 200
            elsewhere = httpx.ASGITransport(client._transport.app, client=("10.0.0.10", 999))  # type: ignore[attr-defined]
            async with httpx.AsyncClient(transport=elsewhere, base_url=BASE) as other:
                assert (await other.get("/v1/jobs", headers={"Authorization": "Bearer guess"})).status_code == 401

    def test_a_bucket_refills_by_half_a_call_a_second(self) -> None:
        now = 100.0
        rate = Rate(30, lambda: now)
        assert [rate.take("a") for _ in range(31)] == [0] * 30 + [2]
        now += 1.0
        assert rate.take("a") == 1
        now += 1.0
        assert [rate.take("a"), rate.take("a")] == [0, 2]
        assert rate.take("b") == 0
        now += 10_000
        assert [rate.take("a") for _ in range(31)] == [0] * 30 + [2], "no more than its capacity"

    def test_it_remembers_so_many_callers_and_no_more(self) -> None:
        rate = Rate(1)
        for number in range(MOST_CALLERS * 3):
            rate.take(f"address {number}")
        assert len(rate._buckets) == MOST_CALLERS
        assert rate.take(f"address {MOST_CALLERS * 3 - 1}") > 0, "the last ones are remembered"
        assert rate.take("address 0") == 0

    async def test_probes_need_no_token_and_tell_nothing(self, limited: Service) -> None:
        async with caller(limited, Authorization="") as client:
            for _ in range(40):
                assert (await client.get("/healthz")).json() == {"status": "ok"}
            ready = await client.get("/readyz")
            assert (ready.status_code, ready.json()["error"]) == (503, "the store or Temporal cannot be reached")
            assert (await client.post("/healthz")).status_code == 401

    @pytest.mark.ruling("Q8.drain")
    async def test_a_drained_host_is_not_ready(self, limited: Service, monkeypatch: pytest.MonkeyPatch) -> None:
        async def reachable(_: Service) -> None: ...

        monkeypatch.setattr(health, "client_of", reachable)
        monkeypatch.setattr(health, "FRESH_SECONDS", 0.0)
        here = limited.settings.host
        host_rows.see(limited.store, here, slots=1, started_at=1.0)
        async with caller(limited) as client:
            assert (await client.get("/readyz")).status_code == 200
            host_rows.drain(limited.store, here)
            ready = await client.get("/readyz")
            assert (ready.status_code, ready.json()["error"]) == (503, f"the host {here} is drained")


@pytest.mark.ruling("J2")
class TestSize:
    @pytest.mark.parametrize(("path", "limit"), [(ASK, GENERAL), (RUN, PIPELINE_RUN), ("/v1/memory/recall", GENERAL)])
    @pytest.mark.parametrize("chunked", [False, True])
    async def test_a_body_may_have_its_limit_and_not_a_byte_more(
        self, call: httpx.AsyncClient, path: str, limit: int, chunked: bool
    ) -> None:
        for size, refused in ((limit - 1, False), (limit, False), (limit + 1, True)):
            answer = await call.post(path, content=in_chunks(size) if chunked else spaces(size), headers=JSON)
            assert (answer.status_code == 413) is refused
        assert answer.json()["error"] == "request body too large"

    @pytest.mark.parametrize("chunked", [False, True])
    def test_a_gigabyte_is_refused_at_the_limit(self, live: Live, chunked: bool) -> None:
        """The sender can push only as much as buffers hold before it reads the answer."""
        head = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {2**30}"
        piece = b"10000\r\n" + b" " * 65_536 + b"\r\n" if chunked else b" " * 65_536
        with socket.create_connection((live.address.host, live.address.port), timeout=10) as line:
            secret = live.service.home.bridge_token.read_text()
            line.sendall(
                f"POST {ASK} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {secret}\r\n"
                f"Content-Type: application/json\r\n{head}\r\n\r\n".encode()
            )
            for _ in range(40 if chunked else 0):
                line.sendall(piece)
            assert line.recv(12) == b"HTTP/1.1 413"

    async def test_half_a_body_is_no_order(self, live: Live) -> None:
        secret = live.service.home.bridge_token.read_text()
        with socket.create_connection((live.address.host, live.address.port), timeout=5) as line:
            line.sendall(
                f"POST /v1/jobs/job-0123456789ab/kill HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20\r\n"
                f"Authorization: Bearer {secret}\r\nContent-Type: application/json\r\n\r\n{{}}".encode()
            )
        await until(lambda: "client_gone" in live.service.home.audit.read_text(), live.service.home.audit.read_text)


@pytest.mark.ruling("J12")
class TestOrigin:
    @pytest.mark.parametrize(
        "host",
        [
            *("127.0.0.1:8791", "127.0.0.1", "localhost:8791", "LOCALHOST", "localhost.", "172.17.0.1:8791"),
            *("[::1]:8791", "[::1]", "[fe80::1]:80", "host.docker.internal:8791", "host.containers.internal"),
            *("bridge.lan", "Bridge.LAN:8791"),
        ],
    )
    async def test_names_that_can_only_be_ours_pass(self, home: Home, host: str) -> None:
        home.config.write_text('[bridge]\nallowed_hosts = ["bridge.lan"]\n')
        async with caller(Service(home)) as client:
            assert (await client.get("/healthz", headers={"Host": host})).status_code == 200

    @pytest.mark.parametrize(
        "host",
        [
            *("evil.example", "evil.example:8791", "localhost.evil.example", "127.0.0.1.nip.io", "evil.localhost"),
            *("127.0.0.1:8791@evil.example", "localhost/evil", "2130706433", "0x7f.1", "127.1", "[evil.example]"),
            *("", "localhost:99999999", "::1", "localhost, evil.example", "[127.0.0.1]"),
        ],
    )
    async def test_a_name_that_somebody_may_have_pointed_here_is_refused(
        self, call: httpx.AsyncClient, host: str
    ) -> None:
        answer = await call.get("/healthz", headers={"Host": host})
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden_host")

    @pytest.mark.parametrize(
        ("origin", "status"),
        [
            (BASE, 200),
            ("http://evil.example", 403),
            ("null", 403),
            ("", 403),
            ("http://127.0.0.1", 403),
            ("http://127.0.0.1:3000", 403),
            ("https://127.0.0.1:8791", 403),
            ("http://localhost:8791", 403),
        ],
    )
    async def test_only_the_bridges_own_pages_may_call(self, call: httpx.AsyncClient, origin: str, status: int) -> None:
        assert (await call.get("/v1/jobs", headers={"Origin": origin})).status_code == status

    async def test_two_origins_are_no_origin_of_ours(self, service: Service) -> None:
        async with caller(service) as client:
            twice = [("Origin", BASE), ("Origin", "http://evil.example")]
            assert (await client.get("/v1/jobs", headers=twice)).status_code == 403


@pytest.mark.ruling("J10")
class TestToken:
    async def test_a_rotation_takes_effect_at_once(self, service: Service, call: httpx.AsyncClient) -> None:
        old = service.home.bridge_token.read_text()
        assert (await call.get("/v1/jobs")).status_code == 200
        for _ in range(5):
            token.rotate(service.home)
            assert (await call.get("/v1/jobs")).status_code == 401
            assert (await call.get("/v1/jobs", headers=bearer(service))).status_code == 200
        assert service.home.bridge_token.read_text() != old

    async def test_a_token_that_is_gone_or_empty_opens_nothing(self, service: Service, call: httpx.AsyncClient) -> None:
        service.home.bridge_token.write_text("")
        assert (await call.get("/v1/jobs")).status_code == 401
        assert (await call.get("/v1/jobs", headers={"Authorization": "Bearer "})).status_code == 401
        service.home.bridge_token.unlink()
        assert (await call.get("/v1/jobs")).status_code == 401

    @pytest.mark.parametrize("form", ["Bearer {}", "bearer {}", "BEARER  {}"])
    async def test_the_schemes_case_does_not_matter(self, service: Service, form: str) -> None:
        async with caller(service) as client:
            headers = {"Authorization": form.format(service.home.bridge_token.read_text())}
            assert (await client.get("/v1/jobs", headers=headers)).status_code == 200

    def test_it_is_of_its_owner_alone_and_long_enough(self, home: Home) -> None:
        home.root.chmod(0o755)
        path = token.ensure(home)
        first = path.read_text()
        assert len(first) >= 43, "32 random bytes"
        assert (path.stat().st_mode & 0o777, home.root.stat().st_mode & 0o777) == (0o600, 0o700)
        assert token.ensure(home).read_text() == first
        path.chmod(0o644)
        assert token.ensure(home).read_text() != first, "somebody else may have read it"
        assert path.stat().st_mode & 0o777 == 0o600
        assert [each.name for each in home.root.iterdir() if "token" in each.name] == ["bridge.token"], (
            "no draft is left"
        )

    def test_it_is_compared_in_constant_time(self, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[tuple[bytes, bytes]] = []

        def compare(shown: bytes, expected: bytes) -> bool:
            asked.append((shown, expected))
            return shown == expected

        monkeypatch.setattr("hmac.compare_digest", compare)
        kept = token.Token(token.ensure(home))
        secret = home.bridge_token.read_bytes()
        assert [kept.accepts(secret), kept.accepts(b"x")] == [True, False]
        assert asked == [(secret, secret), (b"x", secret)]


@pytest.mark.ruling("J2")
def test_a_gigabyte_leaves_memory_flat(service: Service, listening: Callable[[Service], Live]) -> None:
    """The bridge runs in this process, so that its own high-water mark shows."""
    import resource

    live = listening(service)
    secret = service.home.bridge_token.read_text()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    piece = b"100000\r\n" + b" " * 2**20 + b"\r\n"
    with socket.create_connection((live.address.host, live.address.port), timeout=10) as line:
        line.sendall(
            f"POST {ASK} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {secret}\r\n"
            "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        )
        begun, sent = time.monotonic(), 0
        try:
            while sent < 1024 and time.monotonic() - begun < 20:
                line.sendall(piece)
                sent += 1
        except OSError:
            pass  # cut off, as expected
    assert sent < 1024 or time.monotonic() - begun < 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 48 * 1024
