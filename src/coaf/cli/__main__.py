"""`python -m coaf.cli`."""

from coaf.cli.base import app

app()
