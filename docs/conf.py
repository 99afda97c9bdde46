"""Sphinx settings."""

import sys
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
import reference

reference.name_arrays()  # before anything that has them in its signatures is imported
import coaf  # noqa: E402

project = "coaf"
author = project_copyright = "the coaf developers"
release = coaf.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.mathjax",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "reference",
    "architecture",
    "tables",
]
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3
source_suffix = {".md": "markdown"}
# What benchmarks write is no page of its own: pages include it.
exclude_patterns = ["_ext", "_build", "**_results.md", "simulator_ranking.md"]
html_theme = "furo"
html_title = "coaf"

# One file with everything in it, fonts too, so that no page asks a network for formulas.
_mathjax = find_spec("sphinx-mathjax-offline")
assert _mathjax is not None, "pip install sphinx-mathjax-offline"
assert _mathjax.origin is not None
html_static_path = [
    "_static",
    str(Path(_mathjax.origin).parent / "static" / "mathjax" / "tex-svg.js"),
]
mathjax_path = "tex-svg.js"

# Docstrings write names and code in single backticks; those that are known become links.
default_role = "py:obj"
python_use_unqualified_type_names = True
maximum_signature_line_length = 56
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
napoleon_use_param = False  # what stands for a type in our docstrings is a shape
napoleon_use_rtype = False
napoleon_attr_annotations = False  # signatures have the types
napoleon_custom_sections = [("Attributes", "params_style")]  # a list, as parameters are
html_css_files = ["pages.css"]
