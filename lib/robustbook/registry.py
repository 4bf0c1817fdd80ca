"""Things with a name: networks, data sets, recipes.

A row of an experiment names what it uses by a string. `fingerprint` follows that string to the
definition registered under it, so a new network beside an old one makes no stored row stale.
"""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from .errors import BookError, unknown

T = TypeVar("T")


class Registry(Generic[T]):
    """A dictionary that fills itself by decorator and answers unknown names with the nearest ones."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, T] = {}

    def add(self, name: str) -> Callable[[T], T]:
        """Decorator: register a function or class under `name`."""

        def keep(entry: T) -> T:
            if name in self._entries:
                raise BookError(f"{self.kind} '{name}' is registered twice")
            self._entries[name] = entry
            return entry

        return keep

    def __getitem__(self, name: str) -> T:
        if name not in self._entries:
            raise unknown(self.kind, name, self._entries)
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)
