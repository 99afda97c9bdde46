"""Sphinx settings."""

import coaf

project = "coaf"
author = "the coaf developers"
release = coaf.__version__
extensions = ["myst_parser", "sphinx.ext.mathjax"]
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3
source_suffix = {".md": "markdown"}
exclude_patterns = [
    "_build",
    "study_results.md",
    "stress_results.md",
    "speed_results.md",
    "threads_results.md",
    "movielens_results.md",
    "beliefs_results.md",
    "replay_results.md",
    "simulator_results.md",
    "simulator_ranking.md",
    "budget_results.md",
    "selection_results.md",
    "beliefs/*_results.md",
]
html_theme = "furo"
html_title = "coaf"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
