"""Random requests and random moves for a world."""

from dataclasses import replace
from random import Random

from engine_world import MOMENTS, World

from paceline.engine import Request
from paceline.sampling_params import SamplingParams

STOPS = ("ab", "ba", "aab", "bb", "ä", "äb", "bä", "abab")


def random_request(world: World, random: Random) -> Request:
    """Often with the beginning of an earlier one's text, or as another choice of its request."""
    setup = world.setup
    if world.asked and random.random() < 0.15:
        first, asked = random.choice(list(world.asked.items()))
        return replace(
            asked.request,
            params=_random_params(random, setup.vocab_size, random.choice((None, 1, 3, 6, 10))),
            priority=random.choice((0, 0, 1)),
            fork_of=first,
        )
    prompt: list[int] = []
    if world.asked and random.random() < 0.7:
        other = random.choice(list(world.asked.values()))
        text = (*other.request.prompt, *other.expected.tokens)
        prompt = list(text[: random.choice((random.randint(1, len(text)), len(text)))])
    prompt += [random.randrange(setup.vocab_size) for _ in range(random.randint(not prompt, 6))]
    del prompt[world.engine.max_length - 1 :]
    max_tokens = random.choice((None, 1, 3, 6, 10, 16))
    return Request(
        prompt,
        _random_params(random, setup.vocab_size, max_tokens),
        namespace=random.choice(("", "", "tenant")),
        num_speculative_tokens=random.choice((None, None, 0, 2, 4)),
        priority=random.choice((0, 0, 0, 1, -1)),
    )


def _random_params(random: Random, vocab_size: int, max_tokens: int | None) -> SamplingParams:
    return SamplingParams(
        max_tokens,
        stop_token_ids=random.choice(((), (), (), (random.randrange(1, vocab_size),))),
        ignore_eos=random.random() < 0.6,
        stop=random.sample(STOPS, random.choice((0, 0, 1, 2))),
        min_tokens=min(random.choice((0, 0, 0, 2, 6)), max_tokens if max_tokens is not None else 6),
    )


def walk(world: World, random: Random, num_moves: int) -> None:
    """Random moves, then the end."""
    for _ in range(num_moves):
        unfinished = world.unfinished
        move = random.choices(("add", "step", "strike", "abort", "preempt", "hold"), (3, 12, 4, 1, 1, 1))[0]
        if move == "step":
            world.step()
        elif move == "add" or not unfinished:
            world.add(random_request(world, random))
        elif move == "strike":
            what = random.choice(("abort", "preempt", "preempt", "interrupt"))
            world.step(random.choice(MOMENTS), what, random.choice(unfinished))
        elif move == "hold":
            sequence = random.choice(unfinished)
            world.set_held(sequence, not world.asked[sequence].is_held)
        else:
            (world.abort if move == "abort" else world.preempt)(random.choice(unfinished))
    world.drain()
