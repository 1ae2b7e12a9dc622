"""Which published page stands for which tokens: a hash chain over full pages, with everything that it claims checked.

The key of a page is a hash over its parent's key, its namespace and its tokens. A key only says where to look: a page
is a hit when its tokens and the very node of its parent are the ones that were asked for. So two
contexts with one key cost a reuse and never give a wrong one.
"""

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice

from paceline.cache.base import IntegrityError

Digest = Callable[[bytes], bytes]

# A page that agrees only at its beginning has another key, so its parent's children are looked through. A prompt that
# thousands of requests begin with has thousands of children; the newest are the likeliest to be met again.
MAX_CHILDREN_SEARCHED = 32

ROOT_PAGE = -1


@dataclass(slots=True, eq=False)
class Node:
    """A published page. `parent` is the node of the page before it; the first page's is the root of its namespace."""

    page: int
    key: bytes
    parent: "Node | None"
    namespace: str
    tokens: tuple[int, ...]
    depth: int
    children: "dict[int, Node]" = field(default_factory=dict, repr=False)  # by page, oldest first


@dataclass(frozen=True, slots=True)
class Match:
    """`pages` agree fully; of the page `partial`, which would come next, only the first `num_partial` positions do."""

    pages: tuple[int, ...] = ()
    partial: int | None = None
    num_partial: int = 0


def short_digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


def key_material(parent_key: bytes, namespace: str, tokens: Sequence[int]) -> bytes:
    """What a page's key is the hash of. Each part has its length in front, so that no two of them run together."""
    parts = (parent_key, namespace.encode("utf-8", "surrogatepass"), array("q", tokens).tobytes())
    return b"".join([piece for part in parts for piece in (len(part).to_bytes(8, "little"), part)])


class PrefixIndex:
    """Published pages as a tree of nodes. The parent of a node is always there, so only leaves may be removed.

    `_by_page` is the truth: it is written last by `add` and first by `remove`, and `repair` derives the rest from it.
    """

    def __init__(self, page_size: int, digest: Digest = short_digest) -> None:
        self._page_size = page_size
        self._digest = digest
        self._by_page: dict[int, Node] = {}
        self._by_key: dict[bytes, Node] = {}
        self._roots: dict[str, Node] = {}

    def __len__(self) -> int:
        return len(self._by_page)

    def __contains__(self, page: int) -> bool:
        return page in self._by_page

    def __iter__(self) -> Iterator[int]:
        return iter(self._by_page)

    def depth(self, page: int) -> int:
        return self._by_page[page].depth

    def parent(self, page: int) -> int:
        """The page before `page`, ROOT_PAGE for a first one."""
        parent = self._by_page[page].parent
        return ROOT_PAGE if parent is None else parent.page

    def find(self, tokens: Sequence[int], namespace: str) -> Match:
        """The longest published prefix of `tokens`: whole pages, then the beginning of one."""
        node = self._roots.get(namespace)
        if node is None:
            return Match()
        pages: list[int] = []
        size = self._page_size
        for begin in range(0, len(tokens) - size + 1, size):
            child = self._child(node, namespace, tuple(tokens[begin : begin + size]))
            if child is None:
                break
            pages.append(child.page)
            node = child
        partial, num_partial = _closest(node, tokens[len(pages) * size : (len(pages) + 1) * size])
        return Match(tuple(pages), partial, num_partial)

    def add(self, parent_page: int, namespace: str, tokens: tuple[int, ...], page: int) -> int | None:
        """Publish `page` behind `parent_page`, or ROOT_PAGE; returns the page that stands for these tokens now.

        That is another one if they were published before, and None where another context has the same key.
        """
        parent = self._root(namespace) if parent_page == ROOT_PAGE else self._by_page[parent_page]
        key = self._digest(key_material(parent.key, namespace, tokens))
        holder = self._by_key.get(key)
        if holder is not None:
            return holder.page if _stands_for(holder, parent, tokens) else None
        if page in self._by_page:
            raise IntegrityError(f"page {page} is published already, for other tokens")
        node = Node(page, key, parent, namespace, tokens, parent.depth + 1)
        self._roots.setdefault(namespace, parent)  # a no-op unless `parent` is a new root
        parent.children[page] = node
        self._by_key[key] = node
        self._by_page[page] = node
        return page

    def remove(self, page: int) -> None:
        node = self._by_page[page]
        if node.children:
            raise IntegrityError(f"page {page} would be unpublished before page {next(iter(node.children))} behind it")
        del self._by_page[page]
        del self._by_key[node.key]
        assert node.parent is not None
        del node.parent.children[page]
        if node.parent.page == ROOT_PAGE and not node.parent.children:
            del self._roots[node.namespace]

    def repair(self) -> None:
        """Derive everything from `_by_page`, less what has lost its parent."""
        kept: dict[int, Node] = {}
        roots: dict[str, Node] = {}
        for node in sorted(self._by_page.values(), key=lambda node: node.depth):
            parent = node.parent
            assert parent is not None
            if parent.page == ROOT_PAGE:
                roots.setdefault(node.namespace, parent)
                is_sound = roots[node.namespace] is parent
            else:
                is_sound = kept.get(parent.page) is parent
            if is_sound:
                kept[node.page] = node
        for node in (*kept.values(), *roots.values()):
            node.children = {}
        for page, node in self._by_page.items():
            if page in kept and node.parent is not None:
                node.parent.children[page] = node
        self._by_page = {page: node for page, node in self._by_page.items() if page in kept}
        self._by_key = {node.key: node for node in self._by_page.values()}
        self._roots = roots

    def check_integrity(self) -> None:
        for page, node in self._by_page.items():
            parent = node.parent
            if parent is None or node.page != page or len(node.tokens) != self._page_size:
                raise IntegrityError(f"page {page} is published as {node}")
            home = self._roots.get(node.namespace) if parent.page == ROOT_PAGE else self._by_page.get(parent.page)
            if home is not parent or parent.children.get(page) is not node:
                raise IntegrityError(f"page {page} is published and the page {parent.page} before it is not")
            if self._by_key.get(node.key) is not node:
                raise IntegrityError(f"page {page} is published and cannot be found")
        num_children = sum(len(node.children) for node in (*self._by_page.values(), *self._roots.values()))
        if not num_children == len(self._by_key) == len(self._by_page):
            raise IntegrityError(f"{len(self._by_page)} pages, {len(self._by_key)} keys, {num_children} children")
        if not all(root.children for root in self._roots.values()):
            raise IntegrityError("a namespace is kept of which no page is published")

    def _root(self, namespace: str) -> Node:
        root = self._roots.get(namespace)
        return Node(ROOT_PAGE, b"", None, namespace, (), 0) if root is None else root

    def _child(self, parent: Node, namespace: str, tokens: tuple[int, ...]) -> Node | None:
        node = self._by_key.get(self._digest(key_material(parent.key, namespace, tokens)))
        return node if node is not None and _stands_for(node, parent, tokens) else None


def _stands_for(node: Node, parent: Node, tokens: tuple[int, ...]) -> bool:
    """The very parent: so the tokens before it are the same too, and the namespace, whose root the first parent is."""
    return node.parent is parent and node.tokens == tokens


def _closest(parent: Node, tokens: Sequence[int]) -> tuple[int | None, int]:
    """The child page with the longest common beginning with `tokens`, the newest of equals, and that length."""
    best: int | None = None
    longest = 0
    for node in islice(reversed(parent.children.values()), MAX_CHILDREN_SEARCHED):
        num_equal = 0
        for known, wanted in zip(node.tokens, tokens, strict=False):
            if known != wanted:
                break
            num_equal += 1
        if num_equal > longest:
            best, longest = node.page, num_equal
    return best, longest
