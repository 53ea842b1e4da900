"""The hook of mkdocs that makes the reference: it is built with the site and kept nowhere else."""

from __future__ import annotations

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from whosin.app.reference import reference_markdown


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the reference to the pages."""
    files.append(File.generated(config, "reference.md", content=reference_markdown()))
    return files
