"""How many bytes something takes, as people read it."""

_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
"""As disks are sold: a thousand at a time."""


def size(count: int) -> str:
    """In the largest unit that fits."""
    for unit, name in _UNITS:
        if count >= unit:
            return f"{count / unit:.1f} {name}" if count < 10 * unit else f"{count / unit:.0f} {name}"
    return f"{count} bytes"
