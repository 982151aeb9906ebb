"""Says whether a summary may replace the history of an agent."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Sequence

from .program import CompevalError, program


def guard(
    before: Sequence[dict[str, Any]], after: Sequence[dict[str, Any]], *, flags: Sequence[str] = ()
) -> dict[str, Any]:
    """Looks at the messages before and after a compaction, in the form of any vendor's API.

    Returns `verdict` ("pass", "warn", "unchecked" or "reject"), `findings` and `not_applicable`. `flags` are further flags of
    `compeval guard`, such as `["--stop-reason", "length"]`. Raises CompevalError where these are not two histories.
    """
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("before.json", "after.json")]
        for file, messages in zip(files, (before, after)):
            file.write_text(json.dumps(list(messages)), encoding="utf-8")
        command = [program(), "guard", "--before", str(files[0]), "--after", str(files[1]), "--json", *flags]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", check=False)
    if done.returncode not in (0, 100):
        raise CompevalError(done.returncode, done.stderr)
    return json.loads(done.stdout)
