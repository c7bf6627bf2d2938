"""The suites that come with the package, and the hashes under which they were published."""

from pathlib import Path
from typing import Final

__all__ = ["PUBLISHED", "SUITES"]

SUITES: Final = Path(__file__).parent / "suites"
PUBLISHED: Final[dict[str, str]] = {
    "mock": "99eb58376547d43751326efbf642283af21a12768e28f77b257f23b569c498fd",
    "examples": "fc8c08006920a6270a33f108a36dd2d531044365963f55d7a1233a72a30e00d4",
}
"""Hash of every shipped suite. Changed bytes are no longer trusted; a test holds this against the files."""
