"""Where and how a figure was made, for the scripts of this folder."""

import sys
from pathlib import Path
from typing import Any

from paceline.bench import provenance as made


def provenance() -> dict[str, Any]:
    return made.provenance(made.command_line(f"python benchmarks/{Path(sys.argv[0]).name}"))
