"""Hugging Face folders: config.json, safetensors files and their index, quantised while they are loaded."""

from paceline.models.hf.model import HFModel
from paceline.models.hf.quantization import DEFAULT_QUANTIZATION, Quantization, check_quantization

__all__ = ["DEFAULT_QUANTIZATION", "HFModel", "Quantization", "check_quantization"]
