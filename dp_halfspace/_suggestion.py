"""Names that a user may have meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the end of a message that names the most similar known name, or an empty text.

    Examples
    --------
    >>> from dp_halfspace._suggestion import did_you_mean
    >>> did_you_mean("--ou", ["--out", "--delta"])
    '; did you mean --out?'
    >>> did_you_mean("--out", ["--groups", "--save"])
    ''
    """
    # The dashes of options would make all of them similar.
    names = {name.casefold().lstrip("-"): name for name in known}
    found = get_close_matches(word.casefold().lstrip("-"), list(names), n=1)
    return f"; did you mean {names[found[0]]}?" if found else ""
