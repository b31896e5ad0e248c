"""AES-GCM. The library is loaded when something is encrypted: most homes never do."""

import secrets

NONCE = 12


def hidden(key: bytes, data: bytes, label: bytes) -> bytes:
    """Whoever has no key can neither read it nor change it or its label."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = secrets.token_bytes(NONCE)
    return nonce + AESGCM(key).encrypt(nonce, data, label)


def shown(key: bytes, data: bytes, label: bytes) -> bytes | None:
    """None when it was not hidden with this key and this label."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    if len(data) < NONCE:
        return None
    try:
        return AESGCM(key).decrypt(data[:NONCE], data[NONCE:], label)
    except InvalidTag:
        return None
