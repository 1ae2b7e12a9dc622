"""The command `paceline verify` and its options."""

from paceline.cli import options as opt
from paceline.cli import verify_flags as flag
from paceline.cli.failures import reported_failures
from paceline.cli.interrupts import interrupts_at_once

DEFAULT_LENGTH = 64
DEFAULT_RATE = 1e-6


def verify(
    prompts: flag.Prompts,
    proposer: flag.Proposer,
    model: opt.Model = opt.DEFAULT_MODEL,
    quantization: opt.Quantization = None,
    rule: flag.Rule = flag.NamedRule.MATCH,
    num_speculative_tokens: opt.NumSpeculativeTokens = None,
    temperature: flag.Temperature = None,
    top_p: opt.TopP = 1.0,
    top_k: opt.TopK = 0,
    min_p: opt.MinP = 0.0,
    seed: flag.Seed = 0,
    max_tokens: opt.MaxTokens = DEFAULT_LENGTH,
    num_prompts: flag.NumPrompts = None,
    samples: flag.Samples = None,
    false_alarm_rate: flag.FalseAlarmRate = DEFAULT_RATE,
    numerics: flag.Numerics = 0.0,
    chat: flag.Chat = None,
    chat_template: opt.ChatTemplate = None,
    max_model_len: opt.MaxModelLen = None,
    threads: opt.Threads = None,
    json: flag.Json = False,
    debug: opt.Debug = False,
) -> None:
    """Certify that speculation leaves the text as it is.

    Under match, tokens are compared with those of plain decoding; under rejection and block, samples are tested against
    the model's own distribution. The exit status is 0 only for a verdict of "certified".
    """
    with reported_failures(debug):
        with interrupts_at_once():
            from paceline.cli.verify import Sampling
            from paceline.cli.verify import verify as run

        run(
            prompts,
            opt.ModelOptions(
                model, quantization, proposer, num_speculative_tokens, max_model_len, threads, chat_template
            ),
            Sampling(rule.value, temperature, top_p, top_k, min_p, seed, max_tokens, samples),
            num_prompts=num_prompts,
            false_alarm_rate=false_alarm_rate,
            numerics=numerics,
            chat=chat,
            is_json=json,
        )
