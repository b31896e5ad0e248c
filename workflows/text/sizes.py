"""Sizes of files in words."""

_SIZES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
"""Decimal units, as on disks."""


def format_size(count: int) -> str:
    """Format a byte count in the largest unit that fits."""
    for unit, name in _SIZES:
        if count >= unit:
            return f"{count / unit:.1f} {name}" if count < 10 * unit else f"{count / unit:.0f} {name}"
    return f"{count} bytes"
