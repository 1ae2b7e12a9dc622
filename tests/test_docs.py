"""Generated documents match the code."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_generated_documents_are_current() -> None:
    command = [sys.executable, str(ROOT / "tools" / "generate_docs.py"), "--check"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, f"run `make docs`: {result.stdout}{result.stderr}"
