"""The package's version; read from here by the build and by the tracer's scope."""

from typing import Final

__all__ = ["VERSION"]

VERSION: Final = "0.1.0"
