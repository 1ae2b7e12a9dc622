"""Prompts and conversations of callers as token ids."""

from typing import cast

from paceline.api.inputs import ChatOptions, Conversation, Prompt, as_token_ids, is_conversation
from paceline.errors import UsageError
from paceline.models import ChatTemplate, Tokenizer, encode_chat


class Encoder:
    """`template` is None for a model that knows no conversations."""

    def __init__(self, tokenizer: Tokenizer, template: ChatTemplate | None, max_model_len: int) -> None:
        self._tokenizer = tokenizer
        self._template = template
        self._max_model_len = max_model_len

    @property
    def has_template(self) -> bool:
        return self._template is not None

    def prompt(self, prompt: Prompt) -> list[int]:
        """Raises UsageError for what is no prompt, or too long a one."""
        if not isinstance(prompt, str):
            return as_token_ids(prompt)
        least = self._tokenizer.min_num_tokens(prompt)
        if least >= self._max_model_len:  # before a text of megabytes is tokenised for nothing
            raise UsageError(
                f"the prompt has at least {least} tokens, and prompt and answer together may have "
                f"{self._max_model_len}; shorten it"
            )
        return self._tokenizer.encode(prompt)

    def conversation(self, messages: Conversation, options: ChatOptions) -> list[int]:
        """Raises UsageError for what the model's template cannot render, or where it has none."""
        if self._template is None:
            raise UsageError("this model has no chat template: give a plain prompt (--no-chat), or chat_template")
        tools, variables = options
        return encode_chat(self._tokenizer, self._template, messages, tools=tools, variables=variables)

    def either(self, prompt: Prompt | Conversation, options: ChatOptions) -> list[int]:
        if is_conversation(prompt):
            return self.conversation(prompt, options)
        if options != ChatOptions():
            raise UsageError("tools and chat_template_kwargs are for conversations; give messages, or leave them out")
        return self.prompt(cast(Prompt, prompt))
