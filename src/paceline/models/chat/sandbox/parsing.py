"""From a chat template's source to Jinja's syntax tree, checked for what chat templates may hold.

Jinja only reads the source. It compiles and runs nothing, so its optimizer computes no constants either.
"""

from jinja2 import Environment, nodes
from jinja2.ext import Extension, LoopControlExtension
from jinja2.parser import Parser

from paceline.models.chat.sandbox.text import own

# fmt: off
_ALLOWED = frozenset({
    "Add", "And", "Assign", "AssignBlock", "Break", "Call", "CallBlock", "Compare", "Concat", "CondExpr", "Const",
    "Continue", "Dict", "Div", "Filter", "FilterBlock", "FloorDiv", "For", "Getattr", "Getitem", "If", "Keyword",
    "List", "Macro", "Mod", "Mul", "NSRef", "Name", "Neg", "Not", "Operand", "Or", "Output", "Pair", "Pos", "Pow",
    "Scope", "Slice", "Sub", "TemplateData", "Test", "Tuple", "With",
})
# fmt: on


class RefusedSyntaxError(Exception):
    """A template holds what chat templates may not."""


class _GenerationTag(Extension):
    """`{% generation %}…{% endgeneration %}`, which marks answers for training and writes nothing itself."""

    tags = {"generation"}  # noqa: RUF012 (Jinja declares it so)

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True), lineno=line)


def parse(source: str) -> nodes.Template:
    """Texts in the tree are marked as the template's own. Raises `RefusedSyntaxError`, and whatever Jinja raises."""
    environment = Environment(  # blocks trimmed as the models' own tools trim them
        trim_blocks=True, lstrip_blocks=True, extensions=[LoopControlExtension, _GenerationTag]
    )
    tree = environment.parse(source)
    for node in tree.find_all(nodes.Node):
        name = type(node).__name__
        if name not in _ALLOWED:
            raise RefusedSyntaxError(f"line {node.lineno} holds {name}, which chat templates may not")
        if isinstance(node, nodes.Const) and isinstance(node.value, str):
            node.value = own(node.value)
        elif isinstance(node, nodes.TemplateData):
            node.data = own(node.data)
    return tree


def names(tree: nodes.Template) -> frozenset[str]:
    """The variables that a template asks for anywhere."""
    return frozenset(node.name for node in tree.find_all(nodes.Name) if node.ctx == "load")


def words(tree: nodes.Template) -> frozenset[str]:
    """The members that a template asks for anywhere, `x.word` or `x['word']`, among other short texts."""
    attributes = {node.attr for node in tree.find_all(nodes.Getattr)}
    return frozenset(attributes | {str(node.value) for node in tree.find_all(nodes.Const)})
