"""Conversations: chat templates, and token ids in which only the template writes special tokens."""

from paceline.models.chat.encode import encode_chat
from paceline.models.chat.messages import Message, Tool, check_messages
from paceline.models.chat.template import ChatTemplate

__all__ = ["ChatTemplate", "Message", "Tool", "check_messages", "encode_chat"]
