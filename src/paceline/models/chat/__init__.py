"""Conversations: chat templates, and token ids in which only the template writes special tokens."""

from paceline.models.chat.encode import encode_chat
from paceline.models.chat.template import ChatTemplate, Message, check_messages

__all__ = ["ChatTemplate", "Message", "check_messages", "encode_chat"]
