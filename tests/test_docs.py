"""Generated documents match the code, and links between documents lead somewhere."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
UNTRACKED = {"build", "dist", "node_modules"}  # and whatever begins with a dot
LINK = re.compile(r"\]\(([^)\s]+)\)")


def documents() -> list[Path]:
    return [path for path in sorted(ROOT.rglob("*.md")) if not _is_untracked(path.relative_to(ROOT))]


def _is_untracked(path: Path) -> bool:
    return any(part in UNTRACKED or part.startswith(".") for part in path.parts)


def test_generated_documents_are_current() -> None:
    command = [sys.executable, str(ROOT / "tools" / "generate_docs.py"), "--check"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, f"run `make docs`: {result.stdout}{result.stderr}"


def test_links_lead_somewhere() -> None:
    broken = []
    for document in documents():
        for link in LINK.findall(document.read_text()):
            target = link.partition("#")[0]
            if target and "://" not in target and not target.startswith("mailto:"):
                path = document.parent / target
                broken += [] if path.exists() else [f"{document.relative_to(ROOT)}: {link}"]
    assert not broken
    assert ROOT / "README.md" in documents()
