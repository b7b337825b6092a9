"""A page that stands alone: offline, one style sheet, no script.

The page runs nothing: its content-security policy allows only its own style sheet, by hash, and images inside of it.
"""

from __future__ import annotations

import base64
import hashlib

from stepscope.report.marked import Html, verbatim
from stepscope.report.page import sheet

ICON = (
    "data:image/svg+xml;base64,"
    + base64.b64encode(
        b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16">'
        b'<path d="M1 14V9h4V5h4V2h6v12z" fill="#0072B2"/></svg>'
    ).decode()
)


def document(title: str, body: Html) -> Html:
    """The page of one style sheet."""
    style = sheet.base() + sheet.components()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = Html(
        "default-src 'none'; style-src 'sha256-{}'; img-src data:; base-uri 'none'; form-action 'none'"
    ).format(digest)
    return Html('<!doctype html>\n<html lang="en">\n<head>\n{}\n</head>\n<body>\n{}\n</body>\n</html>\n').format(
        page_head(title, policy, style), body
    )


def sections(header: Html, shown: list[tuple[str, str, Html]]) -> Html:
    """The body: a header, links, and the sections that have content. (key, title, content) each."""
    shown = [(key, title, text) for key, title, text in shown if text]
    links = Html().join(Html('<li><a href="#{}">{}</a></li>').format(key, title) for key, title, _ in shown)
    parts = [
        Html('<a class="skip" href="#main">Skip to the report</a>'),
        header,
        Html('<nav aria-label="Sections"><ul>{}</ul></nav>').format(links),
        Html('<main id="main">'),
    ]
    for key, title, text in shown:
        parts.append(
            Html('<section id="{0}" aria-labelledby="{0}-h">\n<h2 id="{0}-h">{1}</h2>\n{2}\n</section>').format(
                key, title, text
            )
        )
    return Html("\n").join([*parts, Html("</main>")])


def page_head(title: str, policy: Html, style: str) -> Html:
    """What stands in the head of a page: ``policy`` says what the browser may load and run."""
    return Html("\n").join(
        (
            Html('<meta charset="utf-8">'),
            Html('<meta http-equiv="Content-Security-Policy" content="{}">').format(policy),
            Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
            Html('<meta name="color-scheme" content="light dark">'),
            Html('<meta name="referrer" content="no-referrer">'),
            Html('<link rel="icon" href="{}">').format(ICON),
            Html("<title>{}</title>").format(title),
            verbatim("style", style),
        )
    )
