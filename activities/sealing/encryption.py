"""AES-GCM. The library is loaded where something is encrypted or decrypted: most homes never do."""

import secrets
from functools import cache
from typing import Any

NONCE = 12


@cache
def library() -> tuple[type[Any], type[Exception]]:
    """The cipher, and what it raises about what it has not made."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM, InvalidTag


def hidden(key: bytes, data: bytes, label: bytes) -> bytes:
    """Whoever has no key can neither read it nor change it or its label."""
    cipher, _ = library()
    nonce = secrets.token_bytes(NONCE)
    return nonce + bytes(cipher(key).encrypt(nonce, data, label))


def shown(key: bytes, data: bytes, label: bytes) -> bytes | None:
    """None when it was not hidden with this key and this label."""
    cipher, wrong = library()
    if len(data) < NONCE:
        return None
    try:
        return bytes(cipher(key).decrypt(data[:NONCE], data[NONCE:], label))
    except (wrong, ValueError):
        return None
