"""Invitations to join a fleet: the token, the proof that a caller has it, and an answer that only its holder can read.

The secret of a token is derived from the seal key, so every host of the fleet can answer it, and none has to keep it
(ruling Q1).
"""

import base64
import hashlib
import hmac
import secrets
from dataclasses import dataclass

from activities.sealing import seal_key
from activities.sealing.payload_seals import decrypt, encrypt

PREFIX = "join1-"
NUMBER, SECRET, PRINT, CHECK = 16, 32, 8, 4
"""Bytes of a token's parts: its number, its secret, the beginning of the key's fingerprint, the check of them all."""


@dataclass(frozen=True)
class Invitation:
    """The contents of a token; `number` names it, `secret` stays with its holder."""

    number: bytes
    secret: bytes
    fingerprint: str
    """The beginning of the fingerprint of the fleet's seal key."""
    address: str = ""
    """The URL of the bridge that invited; empty if it only listens for its own machine."""

    @classmethod
    def of(cls, key: bytes, number: bytes, address: str = "") -> "Invitation":
        """Return the invitation of this number that a holder of the seal key makes."""
        secret = seal_key.derive(key, "invitation", number.hex())
        return cls(number, secret, seal_key.fingerprint(key)[: 2 * PRINT], address)

    @classmethod
    def new(cls, key: bytes, address: str) -> "Invitation":
        return cls.of(key, secrets.token_bytes(NUMBER), address)

    @classmethod
    def read(cls, token: str) -> "Invitation | None":
        """Return the invitation of a token; None if the text is not a complete token."""
        text = token.strip()
        coded = text.removeprefix(PREFIX)
        try:
            data = base64.b64decode(coded + "=" * (-len(coded) % 4), altchars=b"-_", validate=True)
            body, check = data[:-CHECK], data[-CHECK:]
            address = body[NUMBER + SECRET + PRINT :].decode()
        except ValueError:
            return None
        if not text.startswith(PREFIX) or len(body) < NUMBER + SECRET + PRINT or _check(body) != check:
            return None
        number, rest = body[:NUMBER], body[NUMBER:]
        return cls(number, rest[:SECRET], rest[SECRET : SECRET + PRINT].hex(), address)

    @property
    def token(self) -> str:
        body = self.number + self.secret + bytes.fromhex(self.fingerprint) + self.address.encode()
        return PREFIX + base64.urlsafe_b64encode(body + _check(body)).decode().rstrip("=")

    @property
    def digest(self) -> str:
        """Return the digest by which the store knows the invitation."""
        return hashlib.sha256(self.number).hexdigest()

    @property
    def proof(self) -> str:
        """Return the proof that a caller has the token; it does not reveal the secret."""
        return hmac.new(self.secret, b"proof", hashlib.sha256).hexdigest()

    def encrypt_answer(self, data: bytes) -> bytes:
        """Encrypt an answer for the holder of the token."""
        return encrypt(self._encrypting, data, self.number)

    def decrypt_answer(self, answer: bytes) -> bytes | None:
        """Decrypt an answer; None if it was not made for this token."""
        return decrypt(self._encrypting, answer, self.number)

    @property
    def _encrypting(self) -> bytes:
        return hmac.new(self.secret, b"answer", hashlib.sha256).digest()


def _check(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()[:CHECK]
