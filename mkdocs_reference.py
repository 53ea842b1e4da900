"""The hooks of mkdocs that make what the program knows already: the reference, and the list of
theorems. Both are built with the site and kept nowhere else."""

from __future__ import annotations

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from whosin.app.reference import reference_markdown
from whosin.references import THEOREMS


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the reference to the pages; a search shows guides before it."""
    page = "---\nsearch:\n  boost: 0.3\n---\n\n" + reference_markdown()
    files.append(File.generated(config, "reference.md", content=page))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """List the theorems where a page asks for them."""
    entry = "- **{0.number}** {0.statement} [{0.source}]."
    theorems = [entry.format(theorem) for theorem in THEOREMS.values()]
    return markdown.replace("<!-- theorems -->", "\n".join(theorems))
