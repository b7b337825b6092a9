"""Hooks of mkdocs: the site asks for nothing from outside, and has no links to what it does not have.

Links to files of the repository outside of docs/ become their paths. The theme's script for search in pages that are
opened as files would come from another host: ``docs/site/worker.js`` takes its place.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.exceptions import PluginError
from mkdocs.utils import get_relative_url

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

_LINK = re.compile(r"(?<!!)\[([^\]\[]+)\]\(([^)#\s:]+)(?:#[^)\s]*)?\)")

_SHIM = "https://unpkg.com/iframe-worker/shim"
_OURS = "site/worker.js"
_OUTSIDE = re.compile(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=[\"']?https?:")
_APART = ("decisions/", "benchmarks/")
"""Folders whose pages are linked, but neither in the navigation nor in what a search finds."""


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The page with links that the site can follow, and the paths of what lies outside of it."""
    del files
    if page.file.src_uri.startswith(_APART):
        page.meta.setdefault("search", {"exclude": True})
    docs = Path(config.docs_dir).resolve()
    folder = (docs / page.file.src_uri).parent

    def replaced(link: re.Match[str]) -> str:
        target = (folder / link[2]).resolve()
        if target.is_relative_to(docs) and not target.is_dir():
            return link[0]
        path = target.relative_to(docs.parent) if target.is_relative_to(docs.parent) else link[2]
        return link[1] if str(path) in link[1] else f"{link[1]} (`{path}`)"

    return _LINK.sub(replaced, markdown)


def on_post_page(output: str, *, page: Page, config: MkDocsConfig) -> str:
    """The page with our script for its search.

    Raises:
        PluginError: it would load something from another host.
    """
    del config
    made = output.replace(_SHIM, get_relative_url(_OURS, page.url))
    outside = _OUTSIDE.search(made)
    if outside is not None:
        raise PluginError(f"{page.file.src_uri}: loads from another host: {outside[0]}; expected a file of the site")
    return made


def on_post_template(output: str, *, template_name: str, config: MkDocsConfig) -> str:
    """The page of what is not found, likewise."""
    del template_name, config
    return output.replace(_SHIM, f"/{_OURS}")
