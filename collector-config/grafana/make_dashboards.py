"""Writes dashboards/*.json and the tables of docs/dashboards.md; tests say that they agree.

``python collector-config/grafana/make_dashboards.py``
"""

from pathlib import Path

import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder

from boards.documents import alert_rows, panel_rows, series_rows, with_table
from boards.health import HEALTH
from boards.models import MODELS
from boards.panels import Board, built
from boards.tools import TOOLS
from boards.turns import TURNS

BOARDS = (TURNS, MODELS, TOOLS, HEALTH)
FOLDER = Path(__file__).with_name("dashboards")
DOCUMENT = Path(__file__).parents[2] / "docs" / "dashboards.md"
RULES = Path(__file__).parents[1] / "rules" / "turntrace.yaml"


def main() -> None:
    """Write a file for each dashboard, and the document's tables."""
    for board in BOARDS:
        (FOLDER / f"{board.uid}.json").write_text(text(board), encoding="utf-8")
    DOCUMENT.write_text(document(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")


def text(board: Board) -> str:
    """The JSON of a dashboard."""
    return JSONEncoder(sort_keys=True, indent=2).encode(built(board).build()) + "\n"


def document(written: str) -> str:
    """The document with its tables as they are to be."""
    for board in BOARDS:
        written = with_table(written, board.title, panel_rows(board))
    rules = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"][0]["rules"]
    written = with_table(written, "Alerts", alert_rows(rules))
    return with_table(written, "Series", series_rows())


if __name__ == "__main__":
    main()
