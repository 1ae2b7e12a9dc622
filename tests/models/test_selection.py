"""Which files of a repository a reference means."""

import pytest

from paceline.errors import ModelNotFoundError, PacelineError, UnsupportedModelError
from paceline.models import HubReference
from paceline.models.references.selection import choose_files

SEVERAL = [
    "README.md",
    "m-Q2_K.gguf",
    "m-Q4_K_M.gguf",
    "m-Q4_K_S.gguf",
    "m-UD-Q4_K_M.gguf",
    "m-f16.gguf",
    "m-bf16.gguf",
    "mmproj-F32.gguf",
    "m.imatrix.gguf",
    "Q8_0/m-Q8_0-00002-of-00002.gguf",
    "Q8_0/m-Q8_0-00001-of-00002.gguf",
    "UD-Q6_K_XL/weights.gguf",
]
TRANSFORMERS = [
    ".gitattributes",
    "README.md",
    "config.json",
    "consolidated.safetensors",
    "generation_config.json",
    "model-00001-of-00002.safetensors",
    "model-00002-of-00002.safetensors",
    "model.safetensors.index.json",
    "onnx/model.onnx",
    "onnx/tokenizer.json",
    "original/model.safetensors",
    "pytorch_model.bin",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "chat_template.jinja",
    "additional_chat_templates/tools.jinja",
]


def chosen(names: list[str], quantization: str | None = None, file: str | None = None) -> list[str]:
    return choose_files(HubReference("org/repo", quantization, file), names)


def refusal(
    names: list[str], kind: type[PacelineError], quantization: str | None = None, file: str | None = None
) -> str:
    with pytest.raises(kind) as caught:
        chosen(names, quantization, file)
    return str(caught.value)


@pytest.mark.parametrize(
    ("quantization", "expected"),
    [
        (None, ["m-Q4_K_M.gguf"]),
        ("Q4_K_M", ["m-Q4_K_M.gguf"]),
        ("q4_k_s", ["m-Q4_K_S.gguf"]),
        ("UD-Q4_K_M", ["m-UD-Q4_K_M.gguf"]),
        ("F16", ["m-f16.gguf"]),
        ("BF16", ["m-bf16.gguf"]),
        ("Q8_0", ["Q8_0/m-Q8_0-00001-of-00002.gguf", "Q8_0/m-Q8_0-00002-of-00002.gguf"]),
        ("UD-Q6_K_XL", ["UD-Q6_K_XL/weights.gguf"]),
    ],
)
def test_a_quantisation_is_found_by_name(quantization: str | None, expected: list[str]) -> None:
    assert chosen(SEVERAL, quantization) == expected


@pytest.mark.parametrize("quantization", ["Q4_K", "K_M.gguf", "Q3_K_M", "F32", "imatrix", "4_K_M", "Q4.K.M"])
def test_what_no_file_has_is_refused(quantization: str) -> None:
    message = refusal(SEVERAL, ModelNotFoundError, quantization)
    assert message.startswith(f"'org/repo' has no {quantization} model; there is ")
    listed = message.split("; there is ")[1].split(", ")
    assert sorted(listed) == [
        "'BF16'",
        "'F16'",
        "'Q2_K'",
        "'Q4_K_M'",
        "'Q4_K_S'",
        "'Q8_0'",
        "'UD-Q4_K_M'",
        "'UD-Q6_K_XL'",
    ]


def test_the_only_model_needs_no_name() -> None:
    assert chosen(["m-Q8_0.gguf", "mmproj-m-F16.gguf", "config.json"]) == ["m-Q8_0.gguf"]
    parts = ["m-00001-of-00002.gguf", "m-00002-of-00002.gguf"]
    assert chosen(parts) == parts


def test_one_of_several_needs_a_name() -> None:
    message = refusal(["m-Q8_0.gguf", "m-Q2_K.gguf"], ModelNotFoundError)
    assert message == "'org/repo' has no Q4_K_M model to take by default; there is 'Q2_K', 'Q8_0'"
    message = refusal(["a-Q4_K_M.gguf", "b-Q4_K_M.gguf"], ModelNotFoundError)
    assert "has more than one Q4_K_M model to take by default; give the file: 'a-Q4_K_M.gguf', 'b-Q4" in message
    message = refusal(["a-Q8_0.gguf", "b-Q8_0.gguf"], ModelNotFoundError, "q4_0")
    assert message == "'org/repo' has no q4_0 model; there is 'a-Q8_0.gguf', 'b-Q8_0.gguf'"


def test_long_lists_are_cut() -> None:
    message = refusal([f"model{number:02}.gguf" for number in range(50)], ModelNotFoundError)
    assert message.endswith("'model19.gguf' and 30 more")


def test_a_file_is_taken_exactly() -> None:
    assert chosen(SEVERAL, file="mmproj-F32.gguf") == ["mmproj-F32.gguf"]
    assert chosen(SEVERAL, file="Q8_0/m-Q8_0-00002-of-00002.gguf") == chosen(SEVERAL, "Q8_0")
    assert refusal(SEVERAL, ModelNotFoundError, file="M-Q2_K.gguf").startswith("'org/repo' has no file 'M-Q2_K.gguf'")
    assert "it has no .gguf files" in refusal(TRANSFORMERS, ModelNotFoundError, file="m.gguf")


@pytest.mark.parametrize("reference", [(None, "b-00002-of-00002.gguf"), ("b", None)])
def test_a_missing_part_is_named(reference: tuple[str | None, str | None]) -> None:
    message = refusal(["a.gguf", "b-00002-of-00002.gguf"], ModelNotFoundError, *reference)
    assert "has not all parts of a split model: 'b-00001-of-00002.gguf' is missing" in message


def test_of_a_transformers_model_only_its_own_files_are_taken() -> None:
    assert chosen(TRANSFORMERS) == [
        "config.json",
        "additional_chat_templates/tools.jinja",
        "chat_template.jinja",
        "generation_config.json",
        "tokenizer.json",
        "tokenizer.model",
        "tokenizer_config.json",
        "model.safetensors.index.json",
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
    ]
    assert chosen(["config.json", "weights.safetensors"]) == ["config.json", "weights.safetensors"]
    assert "it has no .gguf files" in refusal(TRANSFORMERS, ModelNotFoundError, "Q4_K_M")
    incomplete = [name for name in TRANSFORMERS if "00001" not in name]
    assert "'model-00001-of-00002.safetensors' is missing" in refusal(incomplete, ModelNotFoundError)


def test_a_repository_without_a_model_is_refused() -> None:
    message = refusal(["config.json", "pytorch_model.bin"], UnsupportedModelError)
    assert message.endswith("it has only weights in pickle files, which can run code and are not read")
    assert refusal(["README.md"], UnsupportedModelError).endswith("are needed, it has neither")
    assert "has no model" in refusal(["model.safetensors"], UnsupportedModelError)


def test_what_is_only_cached_is_said_to_be() -> None:
    with pytest.raises(ModelNotFoundError, match=r"'org/repo' in the cache \(the hub cannot be reached\) has no Q2_K"):
        choose_files(HubReference("org/repo", "Q2_K"), ["m-Q8_0.gguf"], is_offline=True)
