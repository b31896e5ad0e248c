"""AES-GCM. The library is loaded on first use: most homes never encrypt."""

import secrets
from functools import cache
from typing import Any

NONCE = 12


@cache
def library() -> tuple[type[Any], type[Exception]]:
    """Return the cipher, and the error it raises about foreign data."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM, InvalidTag


def hidden(key: bytes, data: bytes, label: bytes) -> bytes:
    """Encrypt data. Without the key, neither it nor its label can be read or changed."""
    cipher, _ = library()
    nonce = secrets.token_bytes(NONCE)
    return nonce + bytes(cipher(key).encrypt(nonce, data, label))


def shown(key: bytes, data: bytes, label: bytes) -> bytes | None:
    """Decrypt data; return None if it was not encrypted with this key and this label."""
    cipher, wrong = library()
    if len(data) < NONCE:
        return None
    try:
        return bytes(cipher(key).decrypt(data[:NONCE], data[NONCE:], label))
    except (wrong, ValueError):
        return None
