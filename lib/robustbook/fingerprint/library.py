"""A static picture of the library: which definition leads to which, and a hash for each."""

import ast
import functools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ..storage import sha256

PACKAGE = __name__.partition(".")[0]
UPPER_FLOORS = {"results", "published", "claims", "figures", "cli", "build", "execute", "pages"}
# Code that can refuse, store, speed up or announce a row, but not change its numbers.
NEUTRAL = set("errors storage registry rehearsal vision fingerprint usage provenance memory".split())
NEUTRAL_LEAVES = {"progress", "fetch", "subset"}
Key = tuple[str, str]  # module, name


class Neutral(ast.NodeTransformer):
    """Drop what cannot alter a result: docstrings, annotations, decorators, texts of errors."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module)):
            first = body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                node.body = body[1:]  # type: ignore[attr-defined]
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            node.decorator_list = []
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.returns = None
        if isinstance(node, ast.arg):
            node.annotation = None
        if isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            node.exc.args, node.exc.keywords = [], []
        return node


def serial(value: Any) -> str:
    """A text for a syntax tree that is the same on every Python version (unlike `ast.dump`)."""
    if isinstance(value, ast.AST):
        skip = {"ctx", "kind", "type_comment", "type_params"}
        fields = [(n, v) for n, v in ast.iter_fields(value) if n not in skip and v is not None and v != []]
        return f"{type(value).__name__}({','.join(f'{n}={serial(v)}' for n, v in fields)})"
    if isinstance(value, list):
        return f"[{','.join(map(serial, value))}]"
    return repr(value)


def references(tree: ast.AST) -> Iterator[tuple[str, ...]]:
    """Dotted names that the tree reads: `a`, `a.b.c` as tuples."""
    for node in ast.walk(tree):
        chain: list[str] = []
        while isinstance(node, ast.Attribute):
            chain.append(node.attr)
            node = node.value
        if isinstance(node, ast.Name):
            yield (node.id, *reversed(chain))


def strings_of(tree: ast.AST) -> set[str]:
    """Text constants of the tree."""
    return {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)}


class _Module:
    """The top-level definitions, imports and registered names of one source file."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        self.definitions: dict[str, list[ast.AST]] = {}
        self.imports: dict[str, tuple[str, str | None]] = {}
        self.registered: dict[str, str] = {}
        self._collect(ast.parse(path.read_text(encoding="utf8")).body)

    def _collect(self, body: Iterable[ast.stmt]) -> None:
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                self._register(node)
                self._define(node.name, node)
            elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for name in {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}:
                    self._define(name, node)
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                self._import(node)
            elif isinstance(node, (ast.If, ast.Try, ast.With, ast.For)):
                for field in ("body", "orelse", "handlers", "finalbody"):
                    for part in getattr(node, field, []):
                        self._collect(part.body if isinstance(part, ast.ExceptHandler) else [part])

    def _define(self, name: str, node: ast.AST) -> None:
        self.definitions.setdefault(name, []).append(node)

    def _register(self, node: ast.FunctionDef | ast.ClassDef) -> None:
        """Note `@SOMETHING.add("name")`, the way of every registry of this library."""
        for call in node.decorator_list:
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
                continue
            word = call.args[0] if call.func.attr == "add" and call.args else None
            if isinstance(word, ast.Constant) and isinstance(word.value, str):
                self.registered[word.value] = node.name

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                self.imports[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0],
                    None,
                )
            return
        base = node.module or ""
        if node.level:
            parents = self.package.split(".")
            base = ".".join([*parents[: len(parents) - node.level + 1], *filter(None, [node.module])])
        for alias in node.names:
            self.imports[alias.asname or alias.name] = (base, alias.name)


class Library:
    """A static picture of the package: which definition leads to which."""

    def __init__(self, root: Path) -> None:
        self.modules: dict[str, _Module] = {}
        for path in sorted(root.rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            if parts[0] not in UPPER_FLOORS:
                parts = parts[:-1] if parts[-1] == "__init__" else parts
                name = ".".join((PACKAGE, *parts))
                self.modules[name] = _Module(name, path)
        self.registered: dict[str, list[Key]] = {}
        for module in self.modules.values():
            for word, name in module.registered.items():
                self.registered.setdefault(word, []).append((module.name, name))

    def resolve(self, module: str, chain: tuple[str, ...]) -> Key | None:
        """The definition a dotted name means inside `module`; None outside the library's lower floors."""
        for _ in range(20):  # re-exports may chain, never for long
            if not chain or module not in self.modules:
                return None
            here, (head, *rest) = self.modules[module], chain
            if head in here.definitions:
                return (module, head)
            base, name = here.imports.get(head, (module, head))
            if (base, name) != (module, head):  # an imported name hides a submodule that is called the same
                module, chain = base, ((name, *rest) if name else tuple(rest))
            elif f"{module}.{head}" in self.modules:
                module, chain = f"{module}.{head}", tuple(rest)
            else:
                return None
        return None

    def closure(self, keys: Iterable[Key], strings: Iterable[str]) -> dict[Key, str]:
        """Every definition reached from `keys` and from registered `strings`, with its hash."""
        found: dict[Key, str] = {}
        open_keys = list(keys) + [k for s in strings for k in self.registered.get(s, [])]
        while open_keys:
            key = open_keys.pop()
            if key in found or _neutral(key[0]):
                continue
            found[key], chains, words = self._facts(key)
            open_keys += [k for chain in chains if (k := self.resolve(key[0], chain))]
            open_keys += [k for word in words for k in self.registered.get(word, [])]
        return found

    @functools.cache  # noqa: B019 - one Library per root lives as long as the process
    def _facts(self, key: Key) -> tuple[str, frozenset[tuple[str, ...]], frozenset[str]]:
        trees = [Neutral().visit(_copy(node)) for node in self.modules[key[0]].definitions[key[1]]]
        chains = frozenset(chain for tree in trees for chain in references(tree))
        words = frozenset(word for tree in trees for word in strings_of(tree))
        return sha256("".join(map(serial, trees)).encode())[:16], chains, words


def _copy(node: ast.AST) -> ast.AST:
    """Parse again from text: the transformer edits in place."""
    return ast.parse(ast.unparse(node)).body[0]


def _neutral(module: str) -> bool:
    parts = module.split(".")[1:]
    return bool(parts) and (parts[0] in NEUTRAL or parts[-1] in NEUTRAL_LEAVES)
