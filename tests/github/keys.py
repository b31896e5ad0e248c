"""The key of a GitHub App, and its signatures; by openssl, which comes with git."""

import base64
import json
import subprocess
import time
from functools import cache


@cache
def private_key() -> str:
    """Return a key generated for this test run, in GitHub's format (PEM)."""
    return _openssl(b"", "genrsa", "-traditional", "2048").decode()


def app_jwt(app: int, key_file: str, lives: float = 540) -> str:
    """Return the JWT by which an App authenticates."""
    now = int(time.time())
    parts = [{"alg": "RS256", "typ": "JWT"}, {"iss": str(app), "iat": now - 60, "exp": now + int(lives)}]
    signed = ".".join(_encoded(json.dumps(part).encode()) for part in parts)
    return f"{signed}.{_encoded(_openssl(signed.encode(), 'dgst', '-sha256', '-sign', key_file))}"


def _openssl(given: bytes, *words: str) -> bytes:
    return subprocess.run(["openssl", *words], input=given, capture_output=True, check=True).stdout


def _encoded(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).decode().rstrip("=")
