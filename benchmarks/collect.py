"""Runs every measurement of Paceline alone and keeps the figures that the documentation is made of.

    python benchmarks/collect.py [--model MODEL --title TITLE --out benchmarks/results/NAME.json]

Takes some two minutes on a machine with nothing else to do. `make docs` then writes docs/figures.md, a chapter for
each file of results. Other engines are compare.py's.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from provenance import provenance

HERE = Path(__file__).parent


def run(*command: str) -> str:
    print("+", *command[1:], file=sys.stderr)
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def script(name: str, *arguments: str) -> dict[str, object]:
    """The JSON that a benchmark script writes."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        run(sys.executable, str(HERE / name), *arguments, "--json", str(out))
        return json.loads(out.read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--profile-rounds", type=int, default=40)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--title", default="SmolLM2-135M-Instruct Q4_1")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "smollm2.json")
    arguments = parser.parse_args()
    common = ("--model", arguments.model, "--rounds", str(arguments.rounds))
    profile = ("-m", "paceline", "profile", "-m", arguments.model, "--rounds", str(arguments.profile_rounds))
    figures = {
        "title": arguments.title,
        "provenance": provenance(),
        "overhead": script("overhead.py", *common),
        "profile": json.loads(run(sys.executable, *profile, "--roofline", "--json")),
    }
    figures["profile"]["model"] = Path(arguments.model).name  # no path of this machine
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
