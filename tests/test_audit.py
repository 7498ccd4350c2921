"""`make audit`: what it says of clean and vulnerable packages, and where the advisories cannot be had."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FLAW = {"id": "CVE-2026-1", "fix_versions": ["1.2", "2.0"], "aliases": [], "description": "bad"}


def packages(*vulns):
    return json.dumps({"dependencies": [{"name": "a", "version": "1.0", "vulns": list(vulns)}], "fixes": []})


@pytest.mark.parametrize(
    ("output", "errors", "code", "status", "said"),
    [
        (packages(), "", 0, 0, "1 packages, no known vulnerability"),
        (packages(FLAW), "Found 1 known vulnerability", 1, 1, "a 1.0: CVE-2026-1, fixed in 1.2, 2.0"),
        ("", "ERROR: Could not connect to the service", 1, 2, "nothing was checked: pip-audit could not get"),
        ("", "", 1, 2, "it said nothing"),
        ('{"dependencies": []}', "", 0, 2, "names no package"),
        ("[]", "", 0, 2, "nothing was checked"),
    ],
)
def test_exit_statuses(tmp_path, output, errors, code, status, said):
    program = tmp_path / "pip-audit"
    program.write_text(
        f"#!{sys.executable}\nimport sys\n"
        f"assert '--require-hashes' in sys.argv and sys.argv[-1].endswith('requirements.lock')\n"
        f"print({output!r})\nprint({errors!r}, file=sys.stderr)\nsys.exit({code})\n"
    )
    program.chmod(0o755)
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "audit.py", program, ROOT / "requirements.lock"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == status
    assert said in (done.stdout if status == 0 else done.stderr)


def test_the_makefile_audits_the_lock():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    recipe = makefile.split("\naudit:", 1)[1].split("\n\n", 1)[0]
    assert "tools/audit.py $(SUPPLY)/bin/pip-audit requirements.lock" in recipe
