"""The commands that answer, `generate` and `chat`, and their options."""

from typing import Annotated

import typer

from paceline.cli import options as opt
from paceline.cli.failures import reported_failures
from paceline.cli.interrupts import interrupts_at_once
from paceline.sampling_params import DEFAULT_MAX_TOKENS, SamplingParams


def generate(
    prompt: opt.Prompt,
    model: opt.Model = opt.DEFAULT_MODEL,
    quantization: opt.Quantization = None,
    proposer: opt.Proposer = opt.ProposerName.OFF,
    num_speculative_tokens: opt.NumSpeculativeTokens = None,
    max_tokens: opt.MaxTokens = DEFAULT_MAX_TOKENS,
    min_tokens: opt.MinTokens = 0,
    stop: opt.Stop = None,
    temperature: opt.Temperature = 0.0,
    top_p: opt.TopP = 1.0,
    top_k: opt.TopK = 0,
    min_p: opt.MinP = 0.0,
    seed: opt.Seed = None,
    json_schema: opt.JsonSchema = None,
    regex: opt.Regex = None,
    grammar: opt.Grammar = None,
    chat: opt.Chat = None,
    chat_template: opt.ChatTemplate = None,
    show_drafts: opt.ShowDrafts = False,
    max_model_len: opt.MaxModelLen = None,
    threads: opt.Threads = None,
    json: Annotated[
        bool,
        typer.Option("--json", help="Print one JSON object at the end: text, token ids, usage, timing, speculation."),
    ] = False,
    debug: opt.Debug = False,
) -> None:
    """Answer one prompt. The text goes to standard output as it comes; Ctrl-C ends it with what there is."""
    with reported_failures(debug):
        with interrupts_at_once():
            from paceline.cli.formats import response_format
            from paceline.cli.generate import generate as run

        run(
            prompt,
            opt.ModelOptions(
                model, quantization, proposer, num_speculative_tokens, max_model_len, threads, chat_template
            ),
            SamplingParams(
                max_tokens=max_tokens,
                min_tokens=min_tokens,
                stop=stop or (),
                temperature=temperature,
                top_p=top_p,
                top_k=top_k,
                min_p=min_p,
                seed=seed,
                response_format=response_format(json_schema, regex, grammar),
            ),
            chat=chat,
            show_drafts=show_drafts,
            is_json=json,
        )


def chat(
    model: opt.Model = opt.DEFAULT_MODEL,
    quantization: opt.Quantization = None,
    proposer: opt.Proposer = opt.ProposerName.OFF,
    num_speculative_tokens: opt.NumSpeculativeTokens = None,
    max_tokens: opt.MaxTokens = DEFAULT_MAX_TOKENS,
    temperature: opt.Temperature = 0.0,
    top_p: opt.TopP = 1.0,
    top_k: opt.TopK = 0,
    min_p: opt.MinP = 0.0,
    seed: opt.Seed = None,
    chat_template: opt.ChatTemplate = None,
    show_drafts: opt.ShowDrafts = False,
    max_model_len: opt.MaxModelLen = None,
    threads: opt.Threads = None,
    debug: opt.Debug = False,
) -> None:
    """Have a conversation.

    /clear forgets it, /exit or Ctrl-D ends it, Ctrl-C stops an answer or, at the prompt, leaves. Standard input that
    is not a terminal is read line by line, each line a message.
    """
    with reported_failures(debug):
        with interrupts_at_once():
            from paceline.cli.chat import chat as run

        run(
            opt.ModelOptions(
                model, quantization, proposer, num_speculative_tokens, max_model_len, threads, chat_template
            ),
            SamplingParams(
                max_tokens=max_tokens, temperature=temperature, top_p=top_p, top_k=top_k, min_p=min_p, seed=seed
            ),
            show_drafts=show_drafts,
        )
