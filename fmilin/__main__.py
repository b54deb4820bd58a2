"""``python -m fmilin``: the program, where its script is not on the path."""

from __future__ import annotations

import sys

from fmilin.cli.main import main

sys.exit(main())
