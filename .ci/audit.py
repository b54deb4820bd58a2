"""Reads what pip-audit has found: an advisory is a failure; none to be had, for there is no source, is said."""

import json
import sys
from pathlib import Path

ACCEPTED: dict[str, str] = {}  # the advisory's name, and why it does not concern us

report = Path(sys.argv[1])
packages = json.loads(report.read_text())["dependencies"] if report.is_file() else []
audited = [p for p in packages if "skip_reason" not in p]
print(
    f"{len(audited)} of {len(packages)} packages looked up." if audited else "No source of advisories can be reached."
)
found = [(p["name"], p["version"], v) for p in audited for v in p["vulns"] if v["id"] not in ACCEPTED]
for name, version, advisory in found:
    print(f"{name} {version}: {advisory['id']}, mended in {', '.join(advisory['fix_versions']) or 'no version'}")
sys.exit(bool(found))
