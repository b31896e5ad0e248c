"""Long prompts of a refused set: shortened where its coordinator corrects it, and put back afterwards (ruling C6)."""

from collections.abc import Iterable

from workflows.text.digests import digest

SHOWN = 300
"""Characters of a long prompt that are shown."""


def shorten(prompt: str) -> str:
    """Return the beginning of a long prompt, and the mark that stands for the rest of it."""
    shown, mark, _ = _parts(prompt)
    return shown + mark if mark else prompt


def restore(text: str, prompts: Iterable[str]) -> str:
    """Put the rest of each prompt in place of its mark."""
    for _, mark, rest in map(_parts, prompts):
        text = text.replace(mark, rest) if mark else text
    return text


def _parts(prompt: str) -> tuple[str, str, str]:
    """Split a long prompt between words into what is shown and the rest, with the mark of the rest between them."""
    shown = prompt[:SHOWN].rpartition(" ")[0] or prompt[:SHOWN]
    rest = prompt[len(shown) :]
    mark = f"[... {len(rest):,} characters more: leave this in place of them, {digest(rest)[:8]}]"
    return (shown, mark, rest) if len(rest) > 2 * len(mark) else (prompt, "", "")
