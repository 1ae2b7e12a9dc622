"""Runs a chat template's syntax tree: a template is somebody else's program, and here it can do no more than is listed.

Python never compiles or looks up anything on a template's behalf. Statements are here, expressions next door, and
filters, tests and methods are those listed. Everything is charged to a budget.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Never

from jinja2 import nodes

from paceline.models.chat.sandbox import text as marked
from paceline.models.chat.sandbox.budget import ENTRY_BYTES, LIST_BYTES, Budget, TemplateLimitError
from paceline.models.chat.sandbox.dates import format_date
from paceline.models.chat.sandbox.expressions import Expressions
from paceline.models.chat.sandbox.scope import Loop, Scope
from paceline.models.chat.sandbox.values import (
    Function,
    Namespace,
    TemplateError,
    Undefined,
    is_true,
    kind,
    members,
    to_text,
)

_CALL_STEPS = 8  # of a macro: what Python does for it, in evaluations


class TemplateRefusalError(Exception):
    """The template itself refused the messages, through `raise_exception`."""


class _BreakSignal(Exception):  # noqa: N818 (no error)
    pass


class _ContinueSignal(Exception):  # noqa: N818 (no error)
    pass


def run(tree: nodes.Template, variables: Mapping[str, Any], budget: Budget, now: Callable[[], datetime]) -> str:
    """What the template writes, marked as `text.Text` marks it.

    `variables` hold plain values only. Raises `TemplateLimitError`, `TemplateRefusalError`, `TemplateError`, and what
    Python raises for impossible arithmetic.
    """
    interpreter = Interpreter(budget)
    known = Scope(Scope(None, _functions(budget, now)), dict(variables))
    out: list[str] = []
    interpreter.run(tree.body, Scope(known), out)
    return interpreter.joined(out)


class Interpreter(Expressions):
    """Runs statements. What they write goes to the end of a list."""

    def run(self, body: Sequence[nodes.Node], scope: Scope, out: list[str]) -> None:
        for node in body:
            self.budget.step()
            _STATEMENTS[type(node).__name__](self, node, scope, out)

    def joined(self, out: list[str]) -> str:
        self.budget.write(out)
        return marked.concat(out)

    def _body(self, body: Sequence[nodes.Node], scope: Scope) -> str:
        out: list[str] = []
        self.run(body, scope, out)
        return self.joined(out)

    def _output(self, node: nodes.Output, scope: Scope, out: list[str]) -> None:
        self.budget.make_list(len(node.nodes))
        for part in node.nodes:
            out.append(to_text(self.evaluate(part, scope), self.budget))

    def _if(self, node: nodes.If, scope: Scope, out: list[str]) -> None:
        body = node.body if is_true(self.evaluate(node.test, scope)) else None
        for branch in node.elif_ if body is None else ():
            if is_true(self.evaluate(branch.test, scope)):
                body = branch.body
                break
        self.run(node.else_ if body is None else body, scope, out)

    def _for(self, node: nodes.For, scope: Scope, out: list[str]) -> None:
        self._loop(node, self.evaluate(node.iter, scope), scope, out, 0)

    def _loop(self, node: nodes.For, value: Any, scope: Scope, out: list[str], depth: int) -> None:
        items = members(value, self.budget)
        if node.test is not None:
            items = [item for item in items if self._passes(node, item, scope)]
        loop = Loop(items, depth, self.budget, partial(self._recurse, node, scope, depth) if node.recursive else None)
        for index, item in enumerate(items):
            self.budget.step()
            inner = Scope(scope, {"loop": loop})
            self._assign_to(node.target, item, inner)
            loop.index = index
            try:
                self.run(node.body, inner, out)
            except _ContinueSignal:
                continue
            except _BreakSignal:
                break
        if not items:
            self.run(node.else_, Scope(scope), out)

    def _passes(self, node: nodes.For, item: Any, scope: Scope) -> bool:
        inner = Scope(scope)
        self._assign_to(node.target, item, inner)
        return node.test is None or is_true(self.evaluate(node.test, inner))

    def _recurse(self, node: nodes.For, scope: Scope, depth: int, value: Any) -> str:
        out: list[str] = []
        with self.budget.level():
            self._loop(node, value, scope, out, depth + 1)
        return self.joined(out)

    def _macro(self, node: nodes.Macro, scope: Scope, _: list[str]) -> None:
        scope.values[node.name] = Function(node.name, partial(self._call_macro, node, scope, node.name))

    def _call_macro(
        self, node: nodes.Macro | nodes.CallBlock, scope: Scope, name: str, /, *args: Any, **kwargs: Any
    ) -> str:
        """Arguments that have no name of their own are in `varargs` and `kwargs`, where the body asks for those."""
        self.budget.step(_CALL_STEPS + 2 * len(node.args))
        inner = Scope(scope, {"caller": kwargs.pop("caller", Undefined("caller"))})
        with self.budget.level():
            self._bind(node, inner, name, args, kwargs)
            return self._body(node.body, inner)

    def _bind(
        self,
        node: nodes.Macro | nodes.CallBlock,
        inner: Scope,
        name: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        names = [argument.name for argument in node.args]
        inner.values |= dict(zip(names, args, strict=False))
        for index, argument in enumerate(names[len(args) :], len(args)):
            default = index - len(names) + len(node.defaults)
            if argument in kwargs:
                inner.values[argument] = kwargs.pop(argument)
            elif default >= 0:
                inner.values[argument] = self.evaluate(node.defaults[default], inner)
            else:
                inner.values[argument] = Undefined(argument)
        for extra, more in (("varargs", args[len(names) :]), ("kwargs", kwargs)):
            if more and not self._asks_for(extra, node):
                raise TemplateError(f"the macro {name!r} takes no more than {len(names)} arguments: {', '.join(names)}")
            inner.values[extra] = more

    def _asks_for(self, name: str, node: nodes.Node) -> bool:
        for found in node.find_all(nodes.Node):
            self.budget.step()
            if isinstance(found, nodes.Name) and found.name == name:
                return True
        return False

    def _call_block(self, node: nodes.CallBlock, scope: Scope, out: list[str]) -> None:
        function = self.evaluate(node.call.node, scope)
        args, kwargs = self._arguments(node.call, scope)
        kwargs["caller"] = Function("caller", partial(self._call_macro, node, scope, "caller"))
        out.append(to_text(self.call(function, args, kwargs), self.budget))

    def _filter_block(self, node: nodes.FilterBlock, scope: Scope, out: list[str]) -> None:
        text = self._body(node.body, Scope(scope))
        out.append(to_text(self.filtered(node.filter, text, scope), self.budget))

    def _with(self, node: nodes.With, scope: Scope, out: list[str]) -> None:
        inner = Scope(scope)
        values = [self.evaluate(value, scope) for value in node.values]
        for target, value in zip(node.targets, values, strict=True):
            self._assign_to(target, value, inner)
        self.run(node.body, inner, out)

    def _scope(self, node: nodes.Scope, scope: Scope, out: list[str]) -> None:
        self.run(node.body, Scope(scope), out)

    def _assign(self, node: nodes.Assign, scope: Scope, _: list[str]) -> None:
        self._assign_to(node.target, self.evaluate(node.node, scope), scope)

    def _assign_block(self, node: nodes.AssignBlock, scope: Scope, _: list[str]) -> None:
        value: Any = self._body(node.body, Scope(scope))
        if node.filter is not None:
            value = self.filtered(node.filter, value, scope)
        self._assign_to(node.target, value, scope)

    def _assign_to(self, target: nodes.Node, value: Any, scope: Scope) -> None:
        if isinstance(target, nodes.Name):
            scope.values[target.name] = value
        elif isinstance(target, nodes.NSRef):
            namespace = scope.find(target.name)
            if not isinstance(namespace, Namespace):
                raise TemplateError(f"{target.name!r} is no namespace, so its members cannot be set")
            self.budget.make(ENTRY_BYTES)
            namespace.members[target.attr] = value
        elif isinstance(target, nodes.Tuple):
            parts = members(value, self.budget)
            if len(parts) != len(target.items):
                raise TemplateError(f"{len(target.items)} names cannot take {len(parts)} values")
            for name, part in zip(target.items, parts, strict=True):
                self._assign_to(name, part, scope)

    def _break(self, *_: Any) -> Never:
        raise _BreakSignal

    def _continue(self, *_: Any) -> Never:
        raise _ContinueSignal


def _functions(budget: Budget, now: Callable[[], datetime]) -> dict[str, Any]:
    """What every template may call."""

    def whole_range(*bounds: Any) -> range:
        if not all(isinstance(bound, int) for bound in bounds):
            raise TemplateError("the bounds of a range must be whole numbers")
        found = range(*bounds)
        if found and max(map(abs, (found[0], found[-1]))) >> 62:
            raise TemplateLimitError("a range is too long")
        return found

    def mapping(*given: Any, **entries: Any) -> dict[Any, Any]:
        base = given[0] if given else {}
        if len(given) > 1 or not isinstance(base, dict):
            raise TemplateError("a mapping is made of names and values, or of one mapping")
        budget.make(LIST_BYTES + ENTRY_BYTES * (len(base) + len(entries)))
        return {**base, **entries}

    def namespace(*given: Any, **entries: Any) -> Namespace:
        return Namespace(mapping(*given, **entries))

    def refuse(message: Any = "no reason given") -> Never:
        raise TemplateRefusalError(str(message) if isinstance(message, str) else kind(message))

    def strftime_now(form: Any) -> str:
        return format_date(budget, now(), form)

    functions: dict[str, Callable[..., Any]] = {
        "range": whole_range,
        "dict": mapping,
        "namespace": namespace,
        "raise_exception": refuse,
        "strftime_now": strftime_now,
    }
    return {name: Function(name, function) for name, function in functions.items()}


_STATEMENTS: Mapping[str, Callable[..., None]] = {
    "Assign": Interpreter._assign,
    "AssignBlock": Interpreter._assign_block,
    "Break": Interpreter._break,
    "CallBlock": Interpreter._call_block,
    "Continue": Interpreter._continue,
    "FilterBlock": Interpreter._filter_block,
    "For": Interpreter._for,
    "If": Interpreter._if,
    "Macro": Interpreter._macro,
    "Output": Interpreter._output,
    "Scope": Interpreter._scope,
    "With": Interpreter._with,
}
