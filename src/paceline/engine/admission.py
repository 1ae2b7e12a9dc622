"""From a request to a sequence that can run: everything that could be wrong with it is said before it is queued."""

from collections.abc import Callable, Iterable, Sequence
from operator import index
from time import perf_counter

from paceline.acceptance.base import Sampler
from paceline.acceptance.canonical import create_sampler
from paceline.acceptance.grammar.base import GrammarMask
from paceline.acceptance.noise import MAX_SEED
from paceline.acceptance.processors import Encode
from paceline.acceptance.sampling import NativeSampler
from paceline.checks import check_integer
from paceline.engine.request import Request, SequenceState
from paceline.engine.stops import StopStrings
from paceline.errors import UsageError

TokenText = Callable[[int], bytes]  # what a token adds to the text, in UTF-8


class Admission:
    """Knows what every sequence of an engine has in common.

    `max_length`: tokens that prompt and answer may have together. `token_text` None: stop strings cannot be served;
    `encode` None: nor can `bad_words`.
    """

    def __init__(
        self,
        vocab_size: int,
        max_length: int,
        eos_token_ids: Iterable[int],
        banned_token_ids: Iterable[int],
        token_text: TokenText | None,
        encode: Encode | None,
    ) -> None:
        self._vocab_size = vocab_size
        self._max_length = max_length
        self._eos_ids = frozenset(eos_token_ids)
        self._banned_ids = frozenset(banned_token_ids)
        self._token_text = token_text
        self._encode = encode
        self._native = NativeSampler(vocab_size)

    def state(self, sequence: int, request: Request, other: SequenceState | None) -> SequenceState:
        """`other`: the sequence that `request.fork_of` names, None for one that has ended. Raises UsageError for a
        request that could not run.
        """
        prompt = self._prompt(request)
        self._check(request)
        _check_fork(request, prompt, other)
        params, capacity = request.params, self._max_length - len(prompt)
        stop_ids = frozenset(params.stop_token_ids) | (frozenset() if params.ignore_eos else self._eos_ids)
        grammar = None if request.grammar is None else request.grammar.mask(stop_ids)
        return SequenceState(
            id=sequence,
            request=request,
            tokens=prompt,
            num_prompt=len(prompt),
            max_tokens=capacity if params.max_tokens is None else min(params.max_tokens, capacity),
            stop_ids=stop_ids,
            sampler=self._sampler(request, prompt, stop_ids, grammar),
            stops=self._stops(params.stop),
            grammar=grammar,
            arrived=perf_counter(),
        )

    def _prompt(self, request: Request) -> list[int]:
        try:
            prompt = [index(token) for token in request.prompt]
        except TypeError as error:
            raise UsageError(f"the prompt holds something that is no token id: {error}") from None
        if not prompt:
            raise UsageError("the prompt is empty; expected at least one token")
        if len(prompt) >= self._max_length:
            raise UsageError(
                f"the prompt has {len(prompt)} tokens, and prompt and answer together may have {self._max_length}; "
                f"shorten it to at most {self._max_length - 1}"
            )
        _check_ids("the prompt", prompt, self._vocab_size)
        return prompt

    def _check(self, request: Request) -> None:
        _check_ids("stop_token_ids", request.params.stop_token_ids, self._vocab_size)
        for name in ("prediction", "deadline"):
            value = getattr(request, name)
            if value is not None:
                raise UsageError(f"{name} is {value!r}; this version acts on no {name}, leave it out")
        if request.num_speculative_tokens is not None:
            check_integer("num_speculative_tokens", request.num_speculative_tokens, 0)
        if not isinstance(request.priority, int) or isinstance(request.priority, bool):
            raise UsageError(f"priority is {request.priority!r}; expected an integer, higher ones first")
        check_integer("sample_seed", request.sample_seed, 0, MAX_SEED)
        self._check_grammar(request)
        if not isinstance(request.namespace, str):
            raise UsageError(f"namespace is {request.namespace!r}; expected a text")

    def _check_grammar(self, request: Request) -> None:
        grammar, response_format = request.grammar, request.params.response_format
        if grammar is None and response_format is not None:
            raise UsageError(
                f"response_format is {response_format!r:.100} and grammar None; an engine compiles none, so give the "
                "request what a GrammarCompiler makes of its response format"
            )
        if grammar is not None and grammar.vocab_size != self._vocab_size:
            raise UsageError(
                f"grammar is for a vocabulary of {grammar.vocab_size} tokens; this engine's has {self._vocab_size}"
            )

    def _sampler(
        self, request: Request, prompt: Sequence[int], stop_ids: frozenset[int], grammar: GrammarMask | None
    ) -> Sampler:
        return create_sampler(
            request.params,
            seed=request.sample_seed,
            prompt=prompt,
            vocab_size=self._vocab_size,
            banned_ids=self._banned_ids,
            stop_ids=stop_ids,
            encode=self._encode,
            grammar=grammar,
            native=self._native,
        )

    def _stops(self, stops: Sequence[str]) -> StopStrings | None:
        if not stops:
            return None
        if self._token_text is None:
            raise UsageError(f"stop is {stops!r}; this engine was given no token_text, so it knows no text to stop at")
        return StopStrings(stops, self._token_text)


def _check_fork(request: Request, prompt: Sequence[int], other: SequenceState | None) -> None:
    """Another prompt's keys and values would make another text, and another tenant's are not this one's to use."""
    if other is None:
        return
    if other.request.namespace != request.namespace or other.tokens[: other.num_prompt] != prompt:
        raise UsageError(
            f"fork_of is {other.id}, which has another prompt or namespace; expected another choice of the same request"
        )


def _check_ids(where: str, tokens: Sequence[int], vocab_size: int) -> None:
    if tokens and not (min(tokens) >= 0 and max(tokens) < vocab_size):
        wrong = next(token for token in tokens if not 0 <= token < vocab_size)
        raise UsageError(f"{where} holds the token id {wrong}; expected 0 to {vocab_size - 1}")
