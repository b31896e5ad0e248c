"""Text of agents and people inside a prompt of ours: shown as data that cannot be taken for the prompt (ruling E6)."""

import re

_TICKS = re.compile(r"`+")
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u2028\u2029]")
_INLINE_LIMIT = 300


def fenced(text: str, kind: str = "text") -> str:
    """A block the content cannot close: its fence is longer than any run of backticks inside."""
    clean = _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n").replace("\r", "\n"))
    fence = "`" * max(3, 1 + max((len(run) for run in _TICKS.findall(clean)), default=0))
    return f"{fence}{kind}\n{clean}\n{fence}"


def inline(text: str) -> str:
    """A short value in the running text: one line, and no way out of its code span."""
    line = " ".join(_UNPRINTABLE.sub(" ", text).replace("`", "'").split())
    return f"`{line if len(line) <= _INLINE_LIMIT else line[:_INLINE_LIMIT] + '...'}`"


def cut(text: str, limit: int, whole: str) -> str:
    """At most `limit` characters, and when that is not all, where the whole text is."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[cut: {limit:,} of {len(text):,} characters shown; the whole text is in {whole}]"
