"""What a measured row depends on, as a hash.

A row is stale when something it reaches has changed: the row function, the notebook helpers it
calls, and the definitions of floors 0 to 2 it leads to. The walk is by syntax tree, so comments,
docstrings, annotations, error texts and anything merely standing beside those definitions do not
count. Strings that name a registered network, data set or recipe are followed to its definition.
"""

import ast
import functools
import inspect
import textwrap
import types
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from ..errors import BookError
from ..storage import sha256
from .library import PACKAGE, Key, Library, Neutral, references, serial, strings_of

SCALARS = (int, float, complex, str, bytes, bool, type(None))


@functools.cache
def library() -> Library:
    """The picture of the installed package."""
    return Library(Path(__file__).resolve().parent.parent)


def _own_tree(function: Callable[..., Any]) -> ast.AST:
    try:
        source = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        raise BookError(f"no source for '{function.__name__}': define it in a cell or a file") from None
    return Neutral().visit(ast.parse(source).body[0])


class _Walk:
    """The walk through a notebook's own functions, by their globals, into the library."""

    def __init__(self) -> None:
        self.local: dict[str, str] = {}
        self.keys: set[Key] = set()
        self.words: set[str] = set()

    def function(self, function: Callable[..., Any]) -> None:
        name = function.__qualname__
        if name in self.local:
            return
        tree = _own_tree(function)
        self.local[name] = sha256(serial(tree).encode())[:16]
        self.words |= strings_of(tree)
        scope = _globals(function)
        for chain in references(tree):
            if chain[0] in scope and chain[0] != name:
                self.value(name, chain, scope[chain[0]])

    def value(self, user: str, chain: tuple[str, ...], value: Any) -> None:
        is_module = isinstance(value, types.ModuleType)
        module = value.__name__ if is_module else getattr(value, "__module__", "") or ""
        if is_module:
            if module.split(".")[0] == PACKAGE and (key := library().resolve(module, chain[1:])):
                self.keys.add(key)
        elif isinstance(value, (types.FunctionType, type)):
            if module.split(".")[0] == PACKAGE:
                self.keys |= {key for key in [library().resolve(module, (value.__qualname__,))] if key}
            elif _is_local(value):
                self.function(value)
        elif _is_plain(value):
            self.local[f"{chain[0]}="] = sha256(repr(value).encode())[:16]
            self.words |= set(_words(value))
        elif hasattr(value, "function") and callable(value.function):
            self.function(value.function)
        elif not isinstance(value, types.BuiltinFunctionType) and not callable(value):
            raise BookError(
                f"row function '{user}' reads the global '{chain[0]}' of type {type(value).__name__}, "
                "which has no fingerprint: pass it as an argument or build it inside"
            )


def _globals(value: Any) -> dict[str, Any]:
    """The global names that a function, or the methods of a class, really read."""
    functions = [value] if isinstance(value, types.FunctionType) else vars(value).values()
    found: dict[str, Any] = {}
    for function in functions:
        if isinstance(function, types.FunctionType):
            read = _global_names(function.__code__)
            found |= {n: v for n, v in function.__globals__.items() if n in read}
    return found


def _global_names(code: types.CodeType) -> set[str]:
    inner = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return set(code.co_names).union(*map(_global_names, inner))


def _is_local(value: Any) -> bool:
    """Defined in a notebook or a test rather than in an installed package."""
    try:
        path = inspect.getsourcefile(value) or ""
    except TypeError:
        return value.__module__ == "__main__"
    return "site-packages" not in path and "lib/python" not in path


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(_is_plain(k) and _is_plain(v) for k, v in value.items())
    return isinstance(value, SCALARS)


def _words(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _words([*value.keys(), *value.values()])
    elif isinstance(value, (list, tuple, set, frozenset)):
        for part in value:
            yield from _words(part)


def definitions(function: Callable[..., Any], *, strings: Iterable[str] = ()) -> dict[str, str]:
    """Name -> hash of everything that `function`, called with `strings`, can reach."""
    if (getattr(function, "__module__", "") or "").split(".")[0] == PACKAGE:
        key = library().resolve(function.__module__, (function.__qualname__,))
        return _named(library().closure([key] if key else [], strings), {})
    walk = _Walk()
    walk.function(function)
    return _named(library().closure(walk.keys, walk.words | set(strings)), walk.local)


def _named(closure: dict[Key, str], local: dict[str, str]) -> dict[str, str]:
    """Definitions by bare name: moving one between modules changes nothing."""
    names = dict(local)
    for (module, name), digest in sorted(closure.items()):
        label = name if name not in names else f"{module.removeprefix(PACKAGE + '.')}.{name}"
        names[label] = digest
    return names


def definition_fingerprint(function: Callable[..., Any], *, strings: Iterable[str] = ()) -> str:
    """The fingerprint of `function` when it is called with these strings among its settings."""
    parts = definitions(function, strings=strings)
    return sha256("\n".join(f"{digest}" for digest in sorted(parts.values())).encode())[:16]
