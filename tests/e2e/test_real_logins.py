"""Renewal of a login by the real programs, against a place that gives out tokens on this machine (ruling N2).

codex and kimi can be told another address. claude can't: it speaks to the true names, by a proxy that answers for them
with a certificate of the test's own.
"""

import base64
import hashlib
import json
import os
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from activities.agents import login_renewal
from activities.runtimes.known_runtimes import PROGRAMS
from activities.runtimes.programs import login_expires
from tests.activities.agents.recorded import adapter
from tests.e2e.programs import available, need

pytestmark = [pytest.mark.long, pytest.mark.ruling("N2")]

NAMES = "DNS:platform.claude.com,DNS:*.anthropic.com,DNS:*.claude.com,DNS:claude.ai"


def token(expires: float) -> str:
    """Return a JSON Web Token of codex' login."""
    claims = {"exp": int(expires), "https://api.openai.com/auth": {"chatgpt_account_id": "a"}}
    parts = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode() for part in ({"alg": "none"}, claims))
    return ".".join([*(part.rstrip("=") for part in parts), "c2ln"])


class Handler(BaseHTTPRequestHandler):
    """Gives out tokens, and refuses all else; behind CONNECT too."""

    protocol_version = "HTTP/1.1"
    context: ssl.SSLContext
    seen: ClassVar[list[str]] = []

    def do_CONNECT(self) -> None:
        self.send_response(200)
        self.end_headers()
        try:
            self.connection = self.context.wrap_socket(self.connection, server_side=True)
        except OSError:
            self.close_connection = True
            return
        self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", 0)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.seen.append(self.path)
        gives = "/token" in self.path
        answer: dict[str, Any] = {"error": {"type": "not_found_error", "message": "no"}}
        if gives:
            time.sleep(2)  # a program that ended without waiting would lose the login
            answer = {"refresh_token": "second", "expires_in": 3600, "scope": "user:inference user:profile"}
            answer |= {"token_type": "Bearer", "access_token": token(time.time() + 3600)}
            answer["id_token"] = answer["access_token"]
        body = json.dumps(answer).encode()
        self.send_response(200 if gives else 404)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.do_POST()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    folder = tmp_path / "certificate"
    folder.mkdir()
    for words in (
        "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -subj /CN=test -days 2",
        "req -newkey rsa:2048 -nodes -keyout key.pem -out request.pem -subj /CN=test",
        "x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -out cert.pem -days 2 -extfile names",
    ):
        (folder / "names").write_text(f"subjectAltName={NAMES}\n")
        subprocess.run(["openssl", *words.split()], cwd=folder, check=True, capture_output=True)
    Handler.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    Handler.context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    Handler.seen.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def laid_out(program: str, home: Path, address: str) -> dict[str, str]:
    """Write an expired login, and return the variables that lead its program to this machine."""
    folder = home / PROGRAMS[program].home_folder
    folder.mkdir(parents=True)
    login: dict[str, Any]
    past = int(time.time()) - 60
    match program:
        case "codex":
            tokens = {"id_token": token(past), "access_token": token(past), "refresh_token": "first", "account_id": "a"}
            name, login = "auth.json", {"tokens": tokens, "last_refresh": "2026-01-01T00:00:00Z"}
            variables = {"CODEX_REFRESH_TOKEN_URL_OVERRIDE": f"{address}/oauth/token"}
        case "claude":
            scopes = ["user:inference", "user:profile"]
            oauth = {"accessToken": "old", "refreshToken": "first", "expiresAt": past * 1000, "scopes": scopes}
            name, login = ".credentials.json", {"claudeAiOauth": oauth | {"subscriptionType": "max"}}
            authority = str(home.parent / "certificate" / "ca.pem")
            variables = {"HTTPS_PROXY": address, "NODE_EXTRA_CA_CERTS": authority, "CLAUDE_CODE_MAX_RETRIES": "0"}
        case _:
            base = f"{address}/coding/v1"
            place = json.dumps({"oauthHost": address, "baseUrl": base}, separators=(",", ":"))
            key = f"kimi-code-env-{hashlib.sha256(place.encode()).hexdigest()[:16]}"
            (folder / "credentials").mkdir()
            (folder / "config.toml").write_text(
                f'default_model = "m"\n[models.m]\nprovider = "managed:kimi-code"\nmodel = "m"\n'
                f'max_context_size = 1000\n[providers."managed:kimi-code"]\n'
                f'type = "kimi"\nbase_url = "{base}"\napi_key = ""\n'
                f'oauth = {{ storage = "file", key = "oauth/{key}", oauth_host = "{address}" }}\n'
            )
            name = f"credentials/{key}.json"
            login = {"access_token": "old", "refresh_token": "first", "expires_at": past, "expires_in": 900}
            login |= {"scope": "kimi-code", "token_type": "Bearer"}
            variables = {"KIMI_LOOP_MAX_ATTEMPTS_PER_STEP": "1"}
    (folder / name).write_text(json.dumps(login))
    return variables


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_real_program_renews_an_expired_login(tmp_path: Path, program: str, address: str) -> None:
    need(program)
    login_renewal._failures.clear()
    home = tmp_path / "user"
    variables = laid_out(program, home, address)
    environ = {"HOME": str(home), "PATH": os.environ["PATH"]} | variables
    driver = adapter(program, environ, command=[available()[program]], env=list(variables))
    driver.renew_login()
    expires = login_expires(PROGRAMS[program], environ)
    assert expires is not None
    assert expires > time.time() + login_renewal.MARGIN, (Handler.seen, login_renewal._failures)
    (login,) = (path.read_text() for pattern in PROGRAMS[program].credentials for path in home.rglob(pattern))
    assert "second" in login
    asked = [path for path in Handler.seen if path.endswith(("/completions", "/messages", "/responses"))]
    assert len(asked) == (1 if program == "kimi" else 0), "only kimi asks its model"
    assert sum("/token" in path for path in Handler.seen) == 1
