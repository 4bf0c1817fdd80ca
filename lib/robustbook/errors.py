"""Errors that are the reader's to repair: one line that says what is wrong and what to do."""

from collections.abc import Iterable
from difflib import get_close_matches


class BookError(Exception):
    """A problem a person can fix. The command line prints it as one line and exits with 2."""


def unknown(kind: str, name: str, valid: Iterable[str]) -> BookError:
    """Build the error for a name that does not exist, with the nearest names that do."""
    valid = sorted(valid)
    near = get_close_matches(name, valid, n=3, cutoff=0.4)
    if not near:
        folded = {v.lower(): v for v in valid}
        near = [folded[n] for n in get_close_matches(name.lower(), folded, n=3, cutoff=0.4)]
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(valid[:12]) or 'none'}"
    return BookError(f"unknown {kind} '{name}'; {hint}")
