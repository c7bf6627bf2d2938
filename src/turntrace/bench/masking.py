"""Secrets are taken out of text before it reaches a disk."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

__all__ = ["MASK", "Masking", "secrets_of"]

MASK: Final = "[masked]"
_SHORTEST: Final = 6
"""A shorter value would be found in innocent words."""

_NAMES: Final = re.compile(r"key|token|secret|passw|credential|auth", re.IGNORECASE)
_PATTERNS: Final = re.compile(
    r"sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|AKIA[0-9A-Z]{16}|AIza[\w-]{30,}"
    r"|xox[abprs]-[\w-]{10,}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*|(?<=Bearer )[\w.~+/-]{12,}=*"
)


def secrets_of(env: Mapping[str, str], names: Iterable[str]) -> tuple[str, ...]:
    """Values that must not be written: of ``names`` and of every variable that is called like a secret.

    >>> secrets_of({"API_KEY": "abcdefgh", "LANG": "C.UTF-8"}, ())
    ('abcdefgh',)
    """
    asked = set(names)
    found = {value for name, value in env.items() if name in asked or _NAMES.search(name)}
    return tuple(sorted((value for value in found if len(value) >= _SHORTEST), key=len, reverse=True))


class Masking:
    """Replaces ``secrets`` and everything that looks like a key.

    >>> Masking(("hunter22",))("it is hunter22, or sk-abcdefghijklmnopqrst")
    'it is [masked], or [masked]'
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = tuple(secrets)

    def __call__(self, text: str) -> str:
        """``text`` without them."""
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return _PATTERNS.sub(MASK, text)
