"""Writes dashboards/*.json: ``python collector-config/grafana/make_dashboards.py``. A test says that they agree."""

from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from boards.health import HEALTH
from boards.models import MODELS
from boards.panels import Board, built
from boards.tools import TOOLS
from boards.turns import TURNS

BOARDS = (TURNS, MODELS, TOOLS, HEALTH)
FOLDER = Path(__file__).with_name("dashboards")


def main() -> None:
    """Write a file for each dashboard."""
    for board in BOARDS:
        (FOLDER / f"{board.uid}.json").write_text(text(board), encoding="utf-8")


def text(board: Board) -> str:
    """The JSON of a dashboard."""
    return JSONEncoder(sort_keys=True, indent=2).encode(built(board).build()) + "\n"


if __name__ == "__main__":
    main()
