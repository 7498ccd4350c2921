"""Compare the locked packages with the published advisories: `make audit`.

    python tools/audit.py PIP_AUDIT [LOCK]

Prints a line for each vulnerable package. Exits with 0 where there is none, with 1 where there are some, and
with 2 where the advisories could not be had: then nothing was checked.
"""

from __future__ import annotations

import json
import subprocess
import sys

ARGUMENTS = ("--strict", "--disable-pip", "--require-hashes", "--progress-spinner", "off", "--format", "json")
CLEAN, VULNERABLE, UNCHECKED = 0, 1, 2


def audit(program: str, lock: str) -> tuple[int, list[str]]:
    """The exit status and what to print."""
    done = subprocess.run([program, *ARGUMENTS, "--requirement", lock], capture_output=True, text=True)
    try:
        packages = json.loads(done.stdout)["dependencies"]
        known = [(one["name"], one["version"], one["vulns"]) for one in packages]
    except (ValueError, KeyError, TypeError):
        why = [line for line in done.stderr.splitlines() if line.strip()][-1:] or ["it said nothing"]
        return UNCHECKED, [f"nothing was checked: pip-audit could not get the advisories ({why[0][:300]})"]
    found = [
        f"{name} {version}: {flaw['id']}, fixed in {', '.join(flaw['fix_versions']) or 'no version'}"
        for name, version, flaws in known
        for flaw in flaws
    ]
    if not known:
        return UNCHECKED, [f"nothing was checked: {lock} names no package"]
    return (VULNERABLE, found) if found else (CLEAN, [f"{len(known)} packages, no known vulnerability"])


def main() -> None:
    status, lines = audit(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "requirements.lock")
    print("\n".join(lines), file=sys.stdout if status == CLEAN else sys.stderr)
    sys.exit(status)


if __name__ == "__main__":
    main()
