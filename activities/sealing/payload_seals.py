"""Seals of payloads for Temporal: a seal proves that the service wrote a payload, for this place.

A seal is in the payload's metadata; the data is unchanged, so Temporal's web UI shows it. With encryption the payload
is encrypted instead, with a key derived from the home's. Payloads of both kinds can be read, whichever is written now.

The metadata also names the key, by the beginning of its fingerprint: a home may have several (ruling Q10).
"""

import hmac
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from temporalio.api.common.v1 import Payload

from activities.sealing import seal_key
from workflows.contract.storable import short_line
from workflows.temporal.seals import UnsealedError

NONCE = 12


@cache
def library() -> tuple[type[Any], type[Exception]]:
    """Return the cipher, and the error it raises about foreign data."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM, InvalidTag


def encrypt(key: bytes, data: bytes, label: bytes) -> bytes:
    """Encrypt data with a label. Without the key, the data can't be read, and neither data nor label can be changed."""
    cipher, _ = library()
    nonce = secrets.token_bytes(NONCE)
    return nonce + bytes(cipher(key).encrypt(nonce, data, label))


def decrypt(key: bytes, data: bytes, label: bytes) -> bytes | None:
    """Decrypt data; return None if it was not encrypted with this key and this label."""
    cipher, wrong = library()
    if len(data) < NONCE:
        return None
    try:
        return bytes(cipher(key).decrypt(data[:NONCE], data[NONCE:], label))
    except (wrong, ValueError):
        return None


SEAL, BYTES = "seal", 16
KEY, KEY_BYTES = "key", 4
ENCRYPTED = b"binary/encrypted"
BOUND = "bound"
"""Name of the metadata with an encrypted payload's place, needed to decrypt payloads for people, where the place is
unknown.
"""


@dataclass(frozen=True)
class Binding:
    """The place that a payload is sealed for; it is invalid anywhere else."""

    kind: Literal["workflow", "activity", "text"]
    """`text` is for summaries, which people see and the service never reads back: the SDK names no workflow for
    them.
    """
    workflow_id: str = ""
    activity: str = ""
    """The activity's type."""

    @property
    def parts(self) -> tuple[bytes, ...]:
        return self.kind.encode(), self.workflow_id.encode(), self.activity.encode()


@dataclass(frozen=True)
class Key:
    """The keys for payloads that are derived from one key of the home."""

    name: bytes
    sealing: bytes
    encrypting: bytes

    @classmethod
    @cache
    def of(cls, key: bytes) -> "Key":
        name = bytes.fromhex(seal_key.fingerprint(key))[:KEY_BYTES]
        return cls(name, seal_key.derive(key, "temporal payload"), seal_key.derive(key, "temporal encryption"))


class PayloadSeals:
    """Seals payloads and checks seals, with the keys of one service home. The first key seals."""

    def __init__(self, keys: Sequence[bytes], *, encrypt: bool) -> None:
        if encrypt:
            library()
        self.encrypt, self._keys = encrypt, tuple(map(Key.of, keys))

    @classmethod
    def of(cls, key: bytes, *, encrypt: bool) -> "PayloadSeals":
        """Return the seals of one key."""
        return cls((key,), encrypt=encrypt)

    @classmethod
    def of_home(cls, home: Path, *, encrypt: bool) -> "PayloadSeals":
        """Return the seals of a home; make a key if it has no key yet."""
        seal_key.ensure(home)
        return cls(seal_key.every(home), encrypt=encrypt)

    def seal(self, payload: Payload, binding: Binding) -> Payload:
        """Seal or encrypt a payload for this place, replacing a seal for another place."""
        payload = self._bare(payload)
        key = self._keys[0]
        if not self.encrypt:
            payload.metadata[SEAL], payload.metadata[KEY] = _seal(key, payload, binding), key.name
            return payload
        names = [binding.kind, binding.workflow_id, binding.activity]
        label = json.dumps(names, separators=(",", ":")).encode()
        hidden = encrypt(key.encrypting, payload.SerializeToString(deterministic=True), label)
        return Payload(metadata={"encoding": ENCRYPTED, BOUND: label, KEY: key.name}, data=hidden)

    def unseal(self, payload: Payload, binding: Binding) -> Payload:
        """Check a payload's seal, or decrypt it. Raise `UnsealedError` if the seal isn't this home's, or is for another
        place.
        """
        if is_encrypted(payload):
            if _binding_of(payload) != binding:
                raise UnsealedError(f"it was written for {_place(_binding_of(payload))}, not for {_place(binding)}")
            return self.decrypt(payload)
        seal = payload.metadata.get(SEAL)
        if seal is None:
            raise UnsealedError("it has no seal of this service")
        if not any(hmac.compare_digest(seal, _seal(key, payload, binding)) for key in self._of(payload)):
            raise UnsealedError("its seal is not of this service home, or of another place")
        return payload

    def decrypt(self, payload: Payload) -> Payload:
        """Decrypt a payload to show it to people, whatever its place. Return an unencrypted payload unchanged."""
        if not is_encrypted(payload):
            return payload
        for key in self._of(payload):
            if (data := decrypt(key.encrypting, payload.data, payload.metadata[BOUND])) is not None:
                return Payload.FromString(data)
        raise UnsealedError("it was not encrypted with the key of this service home")

    def _of(self, payload: Payload) -> Sequence[Key]:
        """Return the keys whose name is in the payload's metadata."""
        return [key for key in self._keys if key.name == payload.metadata.get(KEY)]

    def _bare(self, payload: Payload) -> Payload:
        bare = Payload()
        bare.CopyFrom(self.decrypt(payload))
        bare.metadata.pop(SEAL, None)
        bare.metadata.pop(KEY, None)
        return bare


def _seal(key: Key, payload: Payload, binding: Binding) -> bytes:
    kinds = (payload.metadata.get("encoding", b""), payload.metadata.get("messageType", b""))
    parts = (*binding.parts, *kinds, payload.data)
    content = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
    return hmac.digest(key.sealing, content, "sha256")[:BYTES]


def is_encrypted(payload: Payload) -> bool:
    return payload.metadata.get("encoding") == ENCRYPTED


def is_bare(payload: Payload) -> bool:
    """Return whether the payload has no seal, not even an invalid one, and is not encrypted."""
    return SEAL not in payload.metadata and not is_encrypted(payload)


def _binding_of(payload: Payload) -> Binding | None:
    try:
        return Binding(*json.loads(payload.metadata.get(BOUND, b"")))
    except (ValueError, TypeError):
        return None


def _place(binding: Binding | None) -> str:
    if binding is None:
        return "an unnamed place"
    return short_line(f"{binding.activity or 'messages and results'} of {binding.workflow_id or 'no workflow'}", 200)
