"""Removes secrets from command lines, environments and sources before they are stored.

Errs on the side of masking: anything that looks like a token, a password or a key is replaced by ``***``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MASK = "***"

_WORD = (
    r"(?:pass(?:words?|wd|phrase)|secrets?|token|credentials?|auth|bearer|"
    r"(?:api|access|secret|private|session|account|encryption|signing)[_-]?keys?)"
)
_SECRET_NAME = re.compile(rf"(?:^|[^a-z0-9])(?:[a-z0-9]+[_-])*{_WORD}(?:[_-]?[0-9]+)?$", re.IGNORECASE)
"""Pattern of a name that is, or ends in, a secret's word: ``WANDB_API_KEY``, ``--hf-token``, ``password``. Not
``max_tokens``."""
_TOKEN_SHAPES = re.compile(
    r"\b(?:"
    r"(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}"  # OpenAI, Stripe
    r"|hf_[A-Za-z0-9]{16,}"  # Hugging Face
    r"|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"
    r"|glpat-[A-Za-z0-9_-]{16,}"
    r"|xox[abeoprs]-[A-Za-z0-9-]{10,}"  # Slack
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}"  # AWS key ids
    r"|AIza[A-Za-z0-9_-]{30,}"  # Google
    r"|ya29\.[A-Za-z0-9_-]{20,}"
    r"|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*"  # JSON web tokens
    r")"
)
_URL_PASSWORD = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://[^/\s:@]*):[^/\s@]+@")
_ASSIGNED = re.compile(
    rf"""((?:[A-Za-z0-9]+[_-])*{_WORD}["']?\s*[:=]\s*)(["'])(?!\s*\2)([^"'\n]{{4,}})\2""",
    re.IGNORECASE,
)
"""Pattern in source text of a quoted literal assigned to a secret's name."""
_PEM = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)


def is_secret_name(name: str) -> bool:
    """Whether a variable or an option of this name holds a secret."""
    return _SECRET_NAME.search(name.lstrip("-")) is not None


def _mask_shapes(text: str) -> str:
    return _URL_PASSWORD.sub(rf"\1:{MASK}@", _TOKEN_SHAPES.sub(MASK, text))


def mask_command(argv: Sequence[str]) -> list[str]:
    """A command line without its secrets: values of options that name one, and anything with a token's shape."""
    masked = []
    value_of_secret = False
    for word in argv:
        name, equals, _ = word.partition("=")
        if value_of_secret and not word.startswith("-"):
            masked.append(MASK)
            value_of_secret = False
            continue
        value_of_secret = False
        if equals and is_secret_name(name):
            masked.append(f"{name}={MASK}")
            continue
        if word.startswith("-") and not equals and is_secret_name(word):
            value_of_secret = True
        masked.append(_mask_shapes(word))
    return masked


def mask_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment without its secrets."""
    return {name: MASK if is_secret_name(name) else _mask_shapes(value) for name, value in environment.items()}


def mask_text(command: str) -> str:
    """A command line in one string without its secrets; its spacing is kept to single blanks."""
    return " ".join(mask_command(command.split()))


def mask_source(text: str) -> str:
    """Source text without literals assigned to a secret's name, tokens and private keys; lines are preserved."""
    text = _PEM.sub(lambda match: MASK + "\n" * match[0].count("\n"), text)
    return _mask_shapes(_ASSIGNED.sub(rf"\1\2{MASK}\2", text))
