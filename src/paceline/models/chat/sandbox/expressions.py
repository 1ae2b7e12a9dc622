"""The values of a chat template's expressions. Every node that is evaluated costs a step."""

from collections.abc import Callable, Mapping
from typing import Any

from jinja2 import nodes

from paceline.models.chat.sandbox import text as marked
from paceline.models.chat.sandbox.arithmetic import COMPARISONS, OPERATORS
from paceline.models.chat.sandbox.budget import ENTRY_BYTES, LIST_BYTES, Budget
from paceline.models.chat.sandbox.filters import FILTERS
from paceline.models.chat.sandbox.list_filters import path
from paceline.models.chat.sandbox.methods import attribute, item
from paceline.models.chat.sandbox.scope import Loop, Scope
from paceline.models.chat.sandbox.tests import TESTS, truth
from paceline.models.chat.sandbox.values import (
    Function,
    Lazy,
    TemplateError,
    Undefined,
    as_key,
    defined,
    is_true,
    kind,
    members,
    to_text,
)


class Expressions:
    """Evaluates expressions against a budget."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget

    def evaluate(self, node: nodes.Node, scope: Scope) -> Any:
        self.budget.step()
        return _EXPRESSIONS[type(node).__name__](self, node, scope)

    def call(self, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if isinstance(defined(function), Loop) and function.recurse is not None and len(args) == 1:
            return function.recurse(args[0])
        if not isinstance(function, Function):
            raise TemplateError(f"{kind(function)} cannot be called")
        return function.run(*args, **kwargs)

    def filter(self, name: str, value: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        self.budget.step()
        if name in _OVER_ITEMS:
            return Lazy(_OVER_ITEMS[name](self, value, args, kwargs))
        if name not in FILTERS:
            raise TemplateError(f"there is no filter {name!r} for chat templates")
        return FILTERS[name](self.budget, value, *args, **kwargs)

    def test(self, name: str, value: Any, args: list[Any], kwargs: dict[str, Any]) -> bool:
        self.budget.step()
        if name not in TESTS:
            raise TemplateError(f"there is no test {name!r} for chat templates")
        return bool(TESTS[name](self.budget, value, *args, **kwargs))

    def filtered(self, node: nodes.Filter, value: Any, scope: Scope) -> Any:
        """A chain of filters over a block's text, which is what the innermost of them lacks."""
        if isinstance(node.node, nodes.Filter):
            value = self.filtered(node.node, value, scope)
        return self.filter(node.name, value, *self._arguments(node, scope))

    def _arguments(self, node: Any, scope: Scope) -> tuple[list[Any], dict[str, Any]]:
        """Of a call, a filter or a test."""
        args = [self.evaluate(argument, scope) for argument in node.args or ()]
        kwargs = {pair.key: self.evaluate(pair.value, scope) for pair in node.kwargs or ()}
        if node.dyn_args is not None:
            args += members(self.evaluate(node.dyn_args, scope), self.budget)
        if node.dyn_kwargs is not None:
            more = self.evaluate(node.dyn_kwargs, scope)
            if not isinstance(more, dict) or not all(isinstance(key, str) for key in more):
                raise TemplateError("'**' needs a mapping of names")
            kwargs |= {str(key): value for key, value in more.items()}
        self.budget.make_list(len(args) + 10 * len(kwargs))
        return args, kwargs

    # One for each kind of node.

    def _name(self, node: nodes.Name, scope: Scope) -> Any:
        return scope.find(node.name)

    def _const(self, node: nodes.Const, _: Scope) -> Any:
        return node.value

    def _data(self, node: nodes.TemplateData, _: Scope) -> str:
        return node.data

    def _list(self, node: nodes.List, scope: Scope) -> list[Any]:
        self.budget.make_list(len(node.items))
        return [self.evaluate(member, scope) for member in node.items]

    def _tuple(self, node: nodes.Tuple, scope: Scope) -> tuple[Any, ...]:
        return tuple([self.evaluate(member, scope) for member in node.items])

    def _dict(self, node: nodes.Dict, scope: Scope) -> dict[Any, Any]:
        self.budget.make(LIST_BYTES + ENTRY_BYTES * len(node.items))
        return {as_key(self.evaluate(pair.key, scope)): self.evaluate(pair.value, scope) for pair in node.items}

    def _condition(self, node: nodes.CondExpr, scope: Scope) -> Any:
        if is_true(self.evaluate(node.test, scope)):
            return self.evaluate(node.expr1, scope)
        return Undefined("an 'if' without 'else'") if node.expr2 is None else self.evaluate(node.expr2, scope)

    def _filter(self, node: nodes.Filter, scope: Scope) -> Any:
        if node.node is None:
            raise TemplateError(f"the filter {node.name!r} has nothing to work on")
        value = self.evaluate(node.node, scope)
        return self.filter(node.name, value, *self._arguments(node, scope))

    def _test(self, node: nodes.Test, scope: Scope) -> bool:
        value = self.evaluate(node.node, scope)
        return self.test(node.name, value, *self._arguments(node, scope))

    def _call(self, node: nodes.Call, scope: Scope) -> Any:
        function = self.evaluate(node.node, scope)
        return self.call(function, *self._arguments(node, scope))

    def _attribute(self, node: nodes.Getattr, scope: Scope) -> Any:
        return attribute(self.evaluate(node.node, scope), node.attr, self.budget)

    def _item(self, node: nodes.Getitem, scope: Scope) -> Any:
        value = self.evaluate(node.node, scope)
        return item(value, self.evaluate(node.arg, scope), self.budget)

    def _slice(self, node: nodes.Slice, scope: Scope) -> slice:
        bounds = [
            None if bound is None else self.evaluate(bound, scope) for bound in (node.start, node.stop, node.step)
        ]
        if not all(bound is None or isinstance(bound, int) for bound in bounds):
            raise TemplateError("the bounds of a slice must be whole numbers")
        return slice(*bounds)

    def _concat(self, node: nodes.Concat, scope: Scope) -> str:
        pieces = [to_text(self.evaluate(part, scope), self.budget) for part in node.nodes]
        self.budget.write(pieces)
        return marked.concat(pieces)

    def _compare(self, node: nodes.Compare, scope: Scope) -> bool:
        left = self.evaluate(node.expr, scope)
        for operand in node.ops:
            right = self.evaluate(operand.expr, scope)
            if not COMPARISONS[operand.op](self.budget, left, right):
                return False
            left = right
        return True

    def _binary(self, node: nodes.BinExpr, scope: Scope) -> Any:
        left = self.evaluate(node.left, scope)
        return OPERATORS[type(node).__name__](self.budget, left, self.evaluate(node.right, scope))

    def _and(self, node: nodes.And, scope: Scope) -> Any:
        left = self.evaluate(node.left, scope)
        return self.evaluate(node.right, scope) if is_true(left) else left

    def _or(self, node: nodes.Or, scope: Scope) -> Any:
        left = self.evaluate(node.left, scope)
        return left if is_true(left) else self.evaluate(node.right, scope)

    def _not(self, node: nodes.Not, scope: Scope) -> bool:
        return not is_true(self.evaluate(node.node, scope))

    def _signed(self, node: nodes.UnaryExpr, scope: Scope) -> Any:
        value = defined(self.evaluate(node.node, scope))
        if not isinstance(value, int | float):
            raise TemplateError(f"{node.operator} does not work on {kind(value)}")
        return -value if isinstance(node, nodes.Neg) else +value

    # Filters that run others over items. Their arguments are the other's name and its arguments.

    def _map(self, value: Any, args: list[Any], kwargs: dict[str, Any]) -> list[Any]:
        found = self._members(value)
        if not args and "attribute" in kwargs:
            missing = kwargs.get("default")
            results = [path(self.budget, member, kwargs["attribute"]) for member in found]
            has_default = "default" in kwargs
            return [missing if has_default and isinstance(result, Undefined) else result for result in results]
        name, *rest = args or [None]
        return [self.filter(_name_of(name), member, rest, kwargs) for member in found]

    def _select(self, value: Any, args: list[Any], kwargs: dict[str, Any]) -> list[Any]:
        return [member for member in self._members(value) if self._holds(member, args, kwargs)]

    def _reject(self, value: Any, args: list[Any], kwargs: dict[str, Any]) -> list[Any]:
        return [member for member in self._members(value) if not self._holds(member, args, kwargs)]

    def _select_attribute(self, value: Any, args: list[Any], kwargs: dict[str, Any]) -> list[Any]:
        name, *rest = args or [None]
        found = self._members(value)
        return [member for member in found if self._holds(path(self.budget, member, name), rest, kwargs)]

    def _reject_attribute(self, value: Any, args: list[Any], kwargs: dict[str, Any]) -> list[Any]:
        name, *rest = args or [None]
        found = self._members(value)
        return [member for member in found if not self._holds(path(self.budget, member, name), rest, kwargs)]

    def _members(self, value: Any) -> list[Any] | tuple[Any, ...]:
        found = members(value, self.budget)
        self.budget.make_list(len(found))
        return found

    def _holds(self, value: Any, args: list[Any], kwargs: dict[str, Any]) -> bool:
        if not args:
            return truth(self.budget, value)
        return self.test(_name_of(args[0]), value, args[1:], kwargs)


def _name_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise TemplateError(f"expected the name of a filter or test, not {kind(value)}")


_OVER_ITEMS: Mapping[str, Callable[..., list[Any]]] = {
    "map": Expressions._map,
    "reject": Expressions._reject,
    "rejectattr": Expressions._reject_attribute,
    "select": Expressions._select,
    "selectattr": Expressions._select_attribute,
}
_EXPRESSIONS: Mapping[str, Callable[..., Any]] = {
    "And": Expressions._and,
    "Call": Expressions._call,
    "Compare": Expressions._compare,
    "Concat": Expressions._concat,
    "CondExpr": Expressions._condition,
    "Const": Expressions._const,
    "Dict": Expressions._dict,
    "Filter": Expressions._filter,
    "Getattr": Expressions._attribute,
    "Getitem": Expressions._item,
    "List": Expressions._list,
    "Name": Expressions._name,
    "Neg": Expressions._signed,
    "Not": Expressions._not,
    "Or": Expressions._or,
    "Pos": Expressions._signed,
    "Slice": Expressions._slice,
    "TemplateData": Expressions._data,
    "Test": Expressions._test,
    "Tuple": Expressions._tuple,
    **dict.fromkeys(OPERATORS, Expressions._binary),
}
