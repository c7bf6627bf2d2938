"""Options that several commands have, each worded once."""

from enum import StrEnum
from typing import Annotated

import typer

__all__ = ["Content", "ContentOption", "EndpointOption"]


class Content(StrEnum):
    """What becomes of prompts, outputs and messages on their way to an endpoint."""

    DROP = "drop"
    KEEP = "keep"


ContentOption = Annotated[
    Content, typer.Option("--content", help="Whether prompts and outputs may go to the endpoint.")
]
EndpointOption = Annotated[
    str | None,
    typer.Option(
        "--endpoint", "--otlp-endpoint", metavar="URL", help="An OTLP endpoint that gets the spans too."
    ),
]
