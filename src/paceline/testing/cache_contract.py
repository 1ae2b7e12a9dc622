"""The contract of `SequenceCache`, checked beside a shadow that remembers what every slot should hold."""

from functools import partial
from random import Random

from paceline.cache.base import OutOfPagesError
from paceline.testing.cache_shadow import CacheFactory, CacheShadow
from paceline.testing.ensure import ensure, ensure_raises


def check_cache(factory: CacheFactory, *, num_verbs: int = 400, seed: int = 0) -> None:
    """Put caches made by `factory` through every verb, in the order that `seed` gives, and through their refusals."""
    for page_size in (1, 3, 4):
        _check_random_verbs(CacheShadow(factory, 12, page_size), num_verbs, Random(seed))
    _check_refusals(factory)
    _check_sharing(factory)
    _check_reuse(factory)
    _check_eviction(factory)


def random_path(num_rows: int, random: Random) -> list[int]:
    """Row 0 and some later rows, ascending: what a tree may have accepted."""
    return [0, *(row for row in range(1, num_rows) if random.random() < 0.5)]


VERBS = ("append", "append", "append", "adopt", "adopt", "publish", "rewrite", "truncate", "fork", "release", "repair")


def _check_random_verbs(shadow: CacheShadow, num_verbs: int, random: Random) -> None:
    for step in range(num_verbs):
        known = sorted(shadow.expected)
        sequence = random.choice([*known, step])
        match random.choice(VERBS):
            case "append":
                num_rows = random.randint(1, 6)
                is_chain = random.random() < 0.5
                path = range(random.randint(1, num_rows)) if is_chain else random_path(num_rows, random)
                shadow.append(sequence, num_rows, path, random_tokens(shadow, sequence, len(path), random))
            case "adopt":
                tokens = [random.randrange(2) for _ in range(random.randint(0, 14))]
                shadow.adopt(num_verbs + step, tokens, random.choice("ab"))
            case "publish" if known:
                shadow.publish(random.choice(known))
            case "rewrite" if known:
                _rewrite(shadow, random.choice(known), random)
            case "truncate" if known:
                sequence = random.choice(known)
                shadow.truncate(sequence, random.randint(0, len(shadow.expected[sequence])))
            case "fork" if known:
                shadow.fork(random.choice(known), 2 * num_verbs + step)
            case "release":
                shadow.release(sequence)
            case "repair" if step % 8 == 0:
                shadow.repair([sequence for sequence in known if random.random() < 0.8])
    for sequence in sorted(shadow.expected):
        shadow.release(sequence)
    ensure(shadow.cache.num_free_pages == shadow.num_pages, "every page is free after every release")


def _rewrite(shadow: CacheShadow, sequence: int, random: Random) -> None:
    """Publish, go back into what was published, and write other tokens there."""
    shadow.publish(sequence)
    shadow.truncate(sequence, max(0, len(shadow.expected[sequence]) - random.randint(1, 3)))
    shadow.append(sequence, 2, (0, 1), random_tokens(shadow, sequence, 2, random))


def random_tokens(shadow: CacheShadow, sequence: int, num_tokens: int, random: Random) -> list[int] | None:
    """Tokens that others may have too, where the sequence shares at all."""
    return [random.randrange(2) for _ in range(num_tokens)] if sequence in shadow.namespaces else None


def _check_refusals(factory: CacheFactory) -> None:
    shadow = CacheShadow(factory, 4, 2)
    cache = shadow.cache
    ensure(cache.length(7) == 0, "an unknown sequence has length 0")
    cache.release(7)
    shadow.append(0, 3, (0, 1, 2))
    cache.reserve(0, 2)
    for path in ((1,), (0, 0), (1, 0), (0, 2)):
        ensure_raises(ValueError, partial(cache.commit, 0, path), f"commit refuses the path {path}")
    ensure_raises(OutOfPagesError, lambda: cache.reserve(0, 6), "reserve runs out of pages")
    ensure_raises(OutOfPagesError, lambda: cache.reserve(1, 9), "reserve runs out of pages")
    ensure_raises(ValueError, lambda: cache.truncate(0, 4), "truncate does not lengthen")
    ensure_raises(ValueError, lambda: cache.fork(0, 0), "fork needs a new sequence")
    ensure_raises(ValueError, lambda: cache.adopt(0, (1, 2), ""), "adopt needs a new sequence")
    shadow.verify()


def _check_sharing(factory: CacheFactory) -> None:
    """A fork costs a page only where one is half full; writing into a shared one copies it first."""
    shadow = CacheShadow(factory, 6, 4)
    shadow.append(0, 8, range(8))
    shadow.fork(0, 1)
    ensure(shadow.cache.num_free_pages == 4, "full pages are shared")
    shadow.truncate(1, 6)
    ensure(shadow.cache.num_free_pages == 4, "a shared page stays shared until somebody writes")
    shadow.append(1, 1, (0,))
    ensure(shadow.cache.num_free_pages == 3, "a write into a shared page gets a page of its own")
    shadow.fork(1, 2)
    ensure(shadow.cache.num_free_pages == 2, "a half full page is copied by a fork")


def _check_reuse(factory: CacheFactory) -> None:
    """What was published is shared, within its namespace, up to the last token that agrees; nothing else is."""
    shadow = CacheShadow(factory, 9, 4)
    prompt = list(range(10, 18))
    shadow.adopt(0, prompt, "a")
    shadow.append(0, 10, range(8), prompt)
    ensure(shadow.adopt(1, prompt, "a") == 0, "nothing is reused before it was published")
    shadow.publish(0)
    ensure(shadow.adopt(2, prompt, "a") == 8, "all of a prompt is reused, its last page too")
    ensure(shadow.cache.pages(2) == shadow.cache.pages(0)[:2], "full pages are shared")
    ensure(shadow.adopt(3, prompt, "b") == 0, "namespaces share nothing")
    ensure(shadow.adopt(4, [*prompt[:6], 99, 99], "a") == 6, "the beginning of a page is reused")
    shadow.append(4, 1, (0,), [99])
    ensure(shadow.adopt(5, prompt[:3], "a") == 3, "a prompt that ends within a page finds its beginning")
    shadow.append(1, 8, range(8), prompt)
    num_free = shadow.cache.num_free_pages
    shadow.publish(1)
    ensure(shadow.cache.num_free_pages == num_free + 2, "pages that are published already are given back")
    shadow.append(6, 4, range(4))
    shadow.publish(6)
    ensure(shadow.adopt(7, shadow.tokens[6], "") == 0, "a sequence that did not begin with adopt publishes nothing")
    shadow.truncate(2, 5)
    shadow.append(2, 1, (0,), [99])
    shadow.release(0)
    shadow.release(1)
    shadow.truncate(2, 3)
    shadow.append(2, 1, (0,), [99])
    ensure(shadow.adopt(8, prompt, "a") == 8, "a truncated sequence writes to a copy of what it had published")


def _check_eviction(factory: CacheFactory) -> None:
    """What was used least recently goes first, the end of a sequence before its beginning, and only if need be."""
    shadow = CacheShadow(factory, 6, 2)
    for sequence, tokens in enumerate(([1, 2, 3, 4], [5, 6, 7, 8])):
        shadow.adopt(sequence, tokens, "")
        shadow.append(sequence, 4, range(4), tokens)
        shadow.publish(sequence)
        shadow.release(sequence)
    shadow.adopt(2, [1, 2, 3, 4], "")
    shadow.release(2)  # now the first sequence's pages are the most recently used
    shadow.append(3, 6, range(6))
    ensure(shadow.adopt(4, [5, 6, 7, 8], "") == 2, "the end of the least recently used goes first")
    ensure(shadow.adopt(5, [1, 2, 3, 4], "") == 4, "what was used more recently is still there")
    ensure(not shadow.append(6, 1, (0,)), "pages that are held are not evicted")
