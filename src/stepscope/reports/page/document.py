"""A page that stands alone: offline, one style sheet, no script.

The page runs nothing: its content-security policy allows only its own style sheet, by hash, and images inside of it.
"""

from __future__ import annotations

import base64
import hashlib

from stepscope.reports.page import sheet
from stepscope.reports.page.svg import escape

ICON = (
    "data:image/svg+xml;base64,"
    + base64.b64encode(
        b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16">'
        b'<path d="M1 14V9h4V5h4V2h6v12z" fill="#0072B2"/></svg>'
    ).decode()
)


def document(title: str, body: str) -> str:
    """The page. ``title`` is text, ``body`` is markup."""
    style = sheet.base() + sheet.components()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    head = "\n".join(
        (
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            '<meta name="referrer" content="no-referrer">',
            f'<link rel="icon" href="{ICON}">',
            f"<title>{escape(title)}</title>",
            f"<style>{style}</style>",
        )
    )
    return f'<!doctype html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n{body}\n</body>\n</html>\n'


def sections(header: str, shown: list[tuple[str, str, str]]) -> str:
    """The body: a header, links, and the sections that have content. (key, title, markup) each; all are markup."""
    shown = [(key, title, text) for key, title, text in shown if text]
    links = "".join(f'<li><a href="#{key}">{title}</a></li>' for key, title, _ in shown)
    parts = [
        '<a class="skip" href="#main">Skip to the report</a>',
        header,
        f'<nav aria-label="Sections"><ul>{links}</ul></nav>',
        '<main id="main">',
    ]
    for key, title, text in shown:
        parts.append(
            f'<section id="{key}" aria-labelledby="{key}-h">\n<h2 id="{key}-h">{title}</h2>\n{text}\n</section>'
        )
    return "\n".join([*parts, "</main>"])
