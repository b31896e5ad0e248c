"""The search language of lists: filters such as `state:waiting repo:acme/shop`, and words."""

import re
from collections.abc import Collection

from workflows.model.errors import UsageError, with_nearest

_TOKEN = re.compile(r'"[^"]*"|(?:[^\s":]+:)?"[^"]*"|\S+')
_FILTER = re.compile(r"([A-Za-z_-]+):(?!//)(.+)", re.DOTALL)


def parse(text: str, keys: Collection[str]) -> tuple[dict[str, str], str]:
    """Return the filters in a text, by their keys, and its other words. A key's last value counts.

    A filter is a key and a value without a blank between them. What is in quotes is a word, or one value with blanks.
    """
    filters, words = dict[str, str](), list[str]()
    for token in _TOKEN.findall(text):
        match = _FILTER.fullmatch(token)
        if match is None:
            words.append(token.strip('"'))
        elif (key := match[1].lower()) in keys:
            filters[key] = match[2].strip('"')
        else:
            known = f"Use one of: {', '.join(keys)}; or put it in quotes to search for it as a word"
            raise with_nearest(UsageError(f"unknown filter {match[1][:40]!r}. {known}"), key, keys)
    return filters, " ".join(word for word in words if word)
