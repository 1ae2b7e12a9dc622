"""The engines that compare.py knows, each behind the one call that everything is measured through: a forward of n rows.

Names are `ENGINE[+OPTION…]`. `paceline` has no options. `llama.cpp` (the package llama-cpp-python): `fa`, flash
attention. `ik_llama.cpp` (the package ik-llama-cpp-python): `fa`; `repack`, weights repacked into rows side by side
when they are loaded, which its programs call `-rtr`; `thp`, weights on huge pages. What is not listed is the engine's
own default.
"""

import ctypes
from abc import ABC, abstractmethod
from importlib.metadata import version
from typing import Any

PACKAGES = {"paceline": "paceline", "llama.cpp": "llama-cpp-python", "ik_llama.cpp": "ik-llama-cpp-python"}
OPTIONS = {"paceline": set[str](), "llama.cpp": {"fa"}, "ik_llama.cpp": {"fa", "repack", "thp"}}


def parse_name(name: str) -> tuple[str, set[str]]:
    """The engine and its options; raises ValueError where there is no such thing."""
    engine, *options = name.split("+")
    if engine not in OPTIONS:
        raise ValueError(f"there is no engine {engine!r}; expected one of {', '.join(OPTIONS)}")
    unknown = [option for option in options if option not in OPTIONS[engine]]
    if unknown:
        known = ", ".join(sorted(OPTIONS[engine])) or "none"
        raise ValueError(f"{engine} has no option {unknown[0]!r}; its options: {known}")
    return engine, set(options)


class Engine(ABC):
    """A loaded model and the cache of one sequence."""

    vocab_size: int

    @abstractmethod
    def forward(self, length: int, tokens: list[int], num_logits: int) -> int:
        """Run `tokens` behind the first `length` cached positions and forget what lay behind those. The last
        `num_logits` rows get logits; gives the argmax of the last one, 0 where there is none."""

    @abstractmethod
    def facts(self) -> dict[str, object]:
        """What the figures depend on: the package's version and how the engine was built and set up."""


class Paceline(Engine):
    def __init__(self, model: str, num_threads: int, capacity: int) -> None:
        from paceline.models import open_model
        from paceline.runtime.native import NativeOptions, NativeRuntime

        with open_model(model) as opened:
            options = NativeOptions(max_length=capacity, num_threads=num_threads, max_rows=512)
            self.runtime = NativeRuntime.load(opened, options)
        self.vocab_size = self.runtime.info.vocab_size
        self.pages = tuple(range(self.runtime.info.num_pages))

    def forward(self, length: int, tokens: list[int], num_logits: int) -> int:
        from paceline.runtime.base import Segment

        rows = tuple(range(len(tokens) - num_logits, len(tokens)))
        logits = self.runtime.forward([Segment(0, length, self.pages, tuple(tokens), logits_rows=rows)]).logits
        return int(logits[-1, : self.vocab_size].argmax()) if num_logits else 0

    def facts(self) -> dict[str, object]:
        return {"package": "paceline", "version": version("paceline"), "system": self.runtime.info.name}


class _Llama(Engine):
    """What llama.cpp and its fork share: batches, and logits by row."""

    api: Any
    context: Any

    def prepare(self) -> None:
        self.batch = self.api.llama_batch_init(512, 0, 1)

    @abstractmethod
    def forget(self, length: int) -> bool:
        """Drop the cached positions from `length` on; False where the engine cannot."""

    def forward(self, length: int, tokens: list[int], num_logits: int) -> int:
        import numpy as np

        api, batch = self.api, self.batch
        if not self.forget(length):
            raise RuntimeError(f"the cache cannot be cut at {length} positions")
        batch.n_tokens = len(tokens)
        for i, token in enumerate(tokens):
            batch.token[i], batch.pos[i], batch.n_seq_id[i] = token, length + i, 1
            batch.seq_id[i][0] = 0
            batch.logits[i] = i >= len(tokens) - num_logits
        if api.llama_decode(self.context, batch) != 0:
            raise RuntimeError("llama_decode failed")
        if num_logits == 0:
            return 0
        logits = api.llama_get_logits_ith(self.context, len(tokens) - 1)
        return int(np.ctypeslib.as_array(logits, shape=(self.vocab_size,)).argmax())


class LlamaCpp(_Llama):
    def __init__(self, model: str, num_threads: int, capacity: int, options: set[str]) -> None:
        import llama_cpp

        self.api = llama_cpp
        self.llama = llama_cpp.Llama(
            model,
            n_ctx=capacity,
            n_batch=512,
            n_ubatch=512,
            n_threads=num_threads,
            n_threads_batch=num_threads,
            flash_attn="fa" in options,
            swa_full=True,
            verbose=False,
        )
        self.context = self.llama.ctx
        self.vocab_size = self.llama.n_vocab()
        self.memory = llama_cpp.llama_get_memory(self.context)
        self.prepare()

    def forget(self, length: int) -> bool:
        return bool(self.api.llama_memory_seq_rm(self.memory, 0, length, -1))

    def facts(self) -> dict[str, object]:
        system = self.api.llama_print_system_info().decode().strip()
        return {"package": "llama-cpp-python", "version": version("llama-cpp-python"), "system": system}


class IkLlamaCpp(_Llama):
    def __init__(self, model: str, num_threads: int, capacity: int, options: set[str]) -> None:
        from ik_llama_cpp import _ctypes_api as api

        self.api = api
        api.llama_backend_init()
        model_params = api.llama_model_default_params()
        model_params.repack_tensors = "repack" in options
        model_params.use_thp = "thp" in options
        model_params.use_mmap = "repack" not in options  # as its programs do: what is mapped is not repacked
        loaded = api.llama_model_load_from_file(model.encode(), model_params)
        params = api.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch = capacity, 512, 512
        params.n_threads = params.n_threads_batch = num_threads
        params.flash_attn = "fa" in options
        self.context = api.llama_init_from_model(loaded, params) if loaded else None
        if not self.context:
            raise RuntimeError(f"ik_llama.cpp cannot load {model}")
        self.vocab_size = api.llama_vocab_n_tokens(api.llama_model_get_vocab(loaded))
        self.library = api._lib  # the binding leaves out two functions that are needed here
        self.library.llama_kv_cache_seq_rm.argtypes = [ctypes.c_void_p, *3 * [ctypes.c_int32]]
        self.library.llama_kv_cache_seq_rm.restype = ctypes.c_bool
        self.library.llama_print_system_info.restype = ctypes.c_char_p
        self.prepare()

    def forget(self, length: int) -> bool:
        return bool(self.library.llama_kv_cache_seq_rm(self.context, 0, length, -1))

    def facts(self) -> dict[str, object]:
        system = self.library.llama_print_system_info().decode().strip()
        return {"package": "ik-llama-cpp-python", "version": version("ik-llama-cpp-python"), "system": system}


def create_engine(name: str, model: str, num_threads: int, capacity: int) -> Engine:
    """`capacity`: the most positions that a sequence will hold."""
    engine, options = parse_name(name)
    if engine == "paceline":
        return Paceline(model, num_threads, capacity)
    return {"llama.cpp": LlamaCpp, "ik_llama.cpp": IkLlamaCpp}[engine](model, num_threads, capacity, options)
