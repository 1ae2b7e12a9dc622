"""Where chat templates come from: GGUF headers, Hugging Face folders, and files that users name."""

import json
from pathlib import Path
from typing import Any

import pytest
from gguf_files import write_tiny_llama

from paceline.errors import ModelFormatError, PacelineError, UsageError
from paceline.models import ChatTemplate, GGUFFile, Message

HELLO: list[Message] = [{"role": "user", "content": "Hello"}]
TOOL = {"type": "function", "function": {"name": "find", "parameters": {}}}
NAMED = {"name": "tool_use", "template": "for tools {{ tools | length }}"}


def from_gguf(folder: Path, name: str | Path | None = None, **metadata: Any) -> ChatTemplate | None:
    path = folder / "model.gguf"
    write_tiny_llama(path, extra_metadata={f"tokenizer.{key}": value for key, value in metadata.items()})
    with GGUFFile.open(path) as file:
        return ChatTemplate.from_gguf(file, name)


def rendered(template: ChatTemplate | None, **options: Any) -> str:
    assert template is not None
    return template.render(HELLO, **options)


def test_a_file_may_have_no_template(tmp_path: Path) -> None:
    assert from_gguf(tmp_path, chat_template=None) is None


def test_names_of_special_tokens_are_given_to_the_template(tmp_path: Path) -> None:
    source = "{{ bos_token }}|{{ eos_token }}"
    assert rendered(from_gguf(tmp_path, chat_template=source)) == "<|im_start|>|<|im_end|>"


def test_a_file_may_have_several_templates(tmp_path: Path) -> None:
    metadata = {
        "chat_template": "default",
        "chat_templates": ["tool_use", "rag"],
        "chat_template.tool_use": NAMED["template"],
        "chat_template.rag": "rag",
    }
    template = from_gguf(tmp_path, **metadata)
    assert rendered(template) == "default"
    assert rendered(template, tools=[TOOL]) == "for tools 1"
    assert rendered(from_gguf(tmp_path, "rag", **metadata)) == "rag"
    assert rendered(from_gguf(tmp_path, "default", **metadata)) == "default"
    with pytest.raises(
        UsageError, match=r"'other' names no file, .* has the chat templates 'default', 'rag', 'tool_use'"
    ):
        from_gguf(tmp_path, "other", **metadata)
    with pytest.raises(ModelFormatError, match="'tool_use' is listed but missing"):
        from_gguf(tmp_path, chat_templates=["tool_use"])


def test_a_file_that_the_user_names_stands_for_the_models_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.jinja"
    file.write_text("{{ bos_token }}mine", encoding="utf-8")
    assert rendered(from_gguf(tmp_path, file)) == "<|im_start|>mine"
    assert rendered(from_gguf(tmp_path, str(file), chat_template=None)) == "<|im_start|>mine"
    with pytest.raises(UsageError, match=r"names no file, and .* has no chat templates of its own"):
        from_gguf(tmp_path, str(tmp_path / "absent.jinja"), chat_template=None)
    with pytest.raises(UsageError, match="names no file"):
        from_gguf(tmp_path, "{{ messages }}" * 1000)
    file.write_bytes(b"\xff")
    with pytest.raises(ModelFormatError, match="not valid UTF-8"):
        from_gguf(tmp_path, file)


def write(folder: Path, name: str, content: object) -> None:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


def test_a_folder_without_templates_has_none(tmp_path: Path) -> None:
    assert ChatTemplate.from_folder(tmp_path) is None
    write(tmp_path, "tokenizer_config.json", {"chat_template": None})
    assert ChatTemplate.from_folder(tmp_path) is None


def test_a_folder_has_its_template_in_one_of_several_files(tmp_path: Path) -> None:
    write(tmp_path, "tokenizer_config.json", {"chat_template": "config {{ eos_token }}"})
    assert rendered(ChatTemplate.from_folder(tmp_path, eos_token="</s>")) == "config </s>"
    write(tmp_path, "chat_template.json", {"chat_template": "json"})
    assert rendered(ChatTemplate.from_folder(tmp_path)) == "json"
    write(tmp_path, "chat_template.jinja", "jinja")
    assert rendered(ChatTemplate.from_folder(tmp_path)) == "jinja"


def test_a_folder_may_have_named_templates(tmp_path: Path) -> None:
    write(tmp_path, "tokenizer_config.json", {"chat_template": [{"name": "default", "template": "plain"}, NAMED]})
    template = ChatTemplate.from_folder(tmp_path)
    assert rendered(template) == "plain"
    assert rendered(template, tools=[TOOL]) == "for tools 1"
    assert rendered(ChatTemplate.from_folder(tmp_path, name="tool_use"), tools=[TOOL]) == "for tools 1"
    write(tmp_path, "additional_chat_templates/rag.jinja", "rag")
    assert rendered(ChatTemplate.from_folder(tmp_path, name="rag")) == "rag"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("{", "is not valid JSON"),
        ("[" * 100_000, "is not valid JSON"),
        ({"chat_template": 3}, "neither a text nor a list"),
        ({"chat_template": [{"name": "a"}]}, "neither a text nor a list"),
        (
            {"chat_template": [{"name": "a", "template": "x"}, {"name": "b", "template": "y"}]},
            "'a', 'b'.* --chat-template",
        ),
    ],
)
def test_folders_with_broken_templates_are_named(tmp_path: Path, content: object, expected: str) -> None:
    write(tmp_path, "tokenizer_config.json", content)
    with pytest.raises(PacelineError, match=expected) as caught:
        ChatTemplate.from_folder(tmp_path)
    assert str(tmp_path) in str(caught.value)
