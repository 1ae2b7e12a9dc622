"""Another tensor type for a model file, so that engines can be compared on the types that each does best.

    LLAMA-PYTHON benchmarks/requantize.py SOURCE TYPE OUT

TYPE is Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K or Q6_K. Every matrix gets it, embedding and head included; where a
row's length is no multiple of the type's block (SmolLM2's 576 columns and the K types' 256), llama.cpp falls back to
another type and says so. Runs in the environment of llama-cpp-python, whose quantiser does the work, and prints the
SHA-256 of source and result. The result serves to measure speed: what a quantised source has lost stays lost.
"""

import argparse
import hashlib
import sys
from pathlib import Path

FTYPES = {
    "Q4_0": "Q4_0",
    "Q4_1": "Q4_1",
    "Q5_0": "Q5_0",
    "Q5_1": "Q5_1",
    "Q8_0": "Q8_0",
    "Q4_K": "Q4_K_S",
    "Q5_K": "Q5_K_S",
    "Q6_K": "Q6_K",
}


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def requantize(source: Path, type_name: str, out: Path, num_threads: int) -> None:
    try:
        import llama_cpp
    except ImportError:
        raise SystemExit(
            f"{sys.executable} has no llama-cpp-python, whose quantiser this needs; see benchmarks/README.md"
        ) from None
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype = getattr(llama_cpp, f"LLAMA_FTYPE_MOSTLY_{FTYPES[type_name]}")
    params.nthread = num_threads
    params.allow_requantize = True
    params.pure = True
    partial = out.with_name(out.name + ".part")  # an interrupted run leaves nothing that looks like a model
    if llama_cpp.llama_model_quantize(str(source).encode(), str(partial).encode(), params) != 0:
        raise SystemExit(f"llama.cpp could not make {out} of {source}: what it printed says why")
    partial.rename(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("type", choices=FTYPES)
    parser.add_argument("out", type=Path)
    parser.add_argument("--threads", type=int, default=0, help="0: all processors")
    arguments = parser.parse_args()
    if not arguments.source.is_file():
        parser.error(f"{arguments.source} is no file")
    if arguments.out.exists():
        parser.error(f"{arguments.out} exists; remove it first, or name another")
    requantize(arguments.source, arguments.type, arguments.out, arguments.threads)
    for path in (arguments.source, arguments.out):
        print(f"{sha256(path)}  {path.stat().st_size:>12}  {path.name}")


if __name__ == "__main__":
    main()
