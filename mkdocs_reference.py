"""The hook of mkdocs that makes the reference: it is built with the site and kept nowhere else."""

from __future__ import annotations

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from whosin.app.reference import reference_markdown


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the reference to the pages; a search shows guides before it."""
    page = "---\nsearch:\n  boost: 0.3\n---\n\n" + reference_markdown()
    files.append(File.generated(config, "reference.md", content=page))
    return files
