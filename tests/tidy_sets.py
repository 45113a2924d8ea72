"""Finds where the order of a set leaks into what a program does: best effort, by syntax alone.

Known to be sets: displays, comprehensions, `set()` and `frozenset()`, operators on those, and the
attributes, arguments and local names that are annotated or assigned as sets. Leaving the order open
is fine where the result cannot depend on it: `sorted(...)`, `any(...)`, another set.
"""

import ast
from collections.abc import Iterator

Fault = tuple[int, str]
Function = ast.FunctionDef | ast.AsyncFunctionDef

_TYPES = frozenset({"set", "frozenset", "Set", "FrozenSet", "AbstractSet", "MutableSet"})
_METHODS = frozenset({"union", "intersection", "difference", "symmetric_difference"})
_OPERATORS = (ast.BitOr, ast.BitAnd, ast.Sub, ast.BitXor)
_KEEPS_ORDER = frozenset({"list", "tuple", "enumerate", "iter", "zip", "map", "filter", "reversed"})
_FORGETS_ORDER = frozenset({"any", "all", "len", "sum", "set", "frozenset"})
_FORGETS_ORDER_WITHOUT_KEY = frozenset({"sorted", "min", "max"})


def set_order_leaks(tree: ast.Module) -> Iterator[Fault]:
    """Each place in a module where the order of a set decides something."""
    visitor = _Visitor()
    visitor.visit(tree)
    return iter(visitor.faults)


class _Visitor(ast.NodeVisitor):
    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self._attributes: list[frozenset[str]] = [frozenset()]
        self._names: list[frozenset[str]] = [frozenset()]
        self._harmless: list[ast.AST] = []

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._attributes.append(_set_attributes(node))
        self.generic_visit(node)
        self._attributes.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._function(node)

    def _function(self, node: Function) -> None:
        self._names.append(self._names[-1] - _bound(node) | _set_names(node))
        self.generic_visit(node)
        self._names.pop()

    def visit_For(self, node: ast.For) -> None:
        self._iterated(node.iter)
        self.generic_visit(node)

    def visit_AsyncFor(self, node: ast.AsyncFor) -> None:
        self._iterated(node.iter)
        self.generic_visit(node)

    def visit_ListComp(self, node: ast.ListComp) -> None:
        self._comprehension(node)

    def visit_DictComp(self, node: ast.DictComp) -> None:
        self._comprehension(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        self._comprehension(node)

    def _comprehension(self, node: ast.ListComp | ast.DictComp | ast.GeneratorExp) -> None:
        if not self._is_harmless(node):
            for generator in node.generators:
                self._iterated(generator.iter)
        self.generic_visit(node)

    def visit_Starred(self, node: ast.Starred) -> None:
        self._iterated(node.value)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        keyed = any(keyword.arg == "key" for keyword in node.keywords)
        # Equal keys keep the order that they came in.
        leaks_ties = name in _FORGETS_ORDER_WITHOUT_KEY and keyed
        if name in _FORGETS_ORDER | _FORGETS_ORDER_WITHOUT_KEY and not leaks_ties:
            self._harmless.extend(node.args)
        elif leaks_ties or (name in _KEEPS_ORDER and not self._is_harmless(node)):
            for argument in node.args:
                self._iterated(argument)
        elif isinstance(node.func, ast.Attribute) and node.func.attr == "pop" and not node.args:
            self._iterated(node.func.value)
        self.generic_visit(node)

    def _is_harmless(self, node: ast.AST) -> bool:
        return any(node is harmless for harmless in self._harmless)

    def _iterated(self, value: ast.expr) -> None:
        if self._is_set(value):
            self.faults.append((value.lineno, "the order of a set decides here: sort it"))

    def _is_set(self, node: ast.expr) -> bool:
        match node:
            case ast.Set() | ast.SetComp():
                return True
            case ast.Call(func=ast.Name(id="set" | "frozenset")):
                return True
            case ast.Call(func=ast.Attribute(attr=method)) if method in _METHODS:
                return True
            case ast.BinOp(left=left, op=operator, right=right) if isinstance(operator, _OPERATORS):
                return self._is_set(left) or self._is_set(right)
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                return name in self._attributes[-1]
            case ast.Name(id=name):
                return name in self._names[-1]
        return False


def _is_set_type(annotation: ast.expr | None) -> bool:
    match annotation:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in _TYPES
        case ast.Subscript(value=value):
            return _is_set_type(value)
        case ast.Constant(value=str(text)):
            return text.split("[")[0] in _TYPES
    return False


def _makes_set(value: ast.expr | None) -> bool:
    match value:
        case ast.Set() | ast.SetComp() | ast.Call(func=ast.Name(id="set" | "frozenset")):
            return True
    return False


def _set_attributes(node: ast.ClassDef) -> frozenset[str]:
    """Attributes of a class that are annotated as sets, or given one through `self`."""
    found: set[str] = set()
    for statement in node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                if _is_set_type(annotation):
                    found.add(name)
    for inner in ast.walk(node):
        match inner:
            case ast.AnnAssign(
                target=ast.Attribute(value=ast.Name(id="self"), attr=name), annotation=annotation
            ):
                if _is_set_type(annotation):
                    found.add(name)
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=value):
                if _makes_set(value):
                    found.add(name)
    return frozenset(found)


def _arguments(node: Function) -> Iterator[ast.arg]:
    yield from (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)


def _bound(node: Function) -> frozenset[str]:
    """Names that a function binds itself, so that an outer set of that name is not meant."""
    stored = {
        inner.id
        for inner in ast.walk(node)
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)
    }
    return frozenset(stored | {argument.arg for argument in _arguments(node)})


def _set_names(node: Function) -> frozenset[str]:
    """Arguments and locals that are sets, unless they are bound to something else as well."""
    sets = {argument.arg for argument in _arguments(node) if _is_set_type(argument.annotation)}
    others: set[str] = set()
    for inner in ast.walk(node):
        match inner:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                (sets if _is_set_type(annotation) else others).add(name)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                (sets if _makes_set(value) else others).add(name)
    return frozenset(sets - others)
