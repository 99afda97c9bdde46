"""Simulated problems, and how policies do in them."""

from coaf.worlds.batch import Batch, Scene
from coaf.worlds.checks import check_world
from coaf.worlds.classic import ContextualBandit, Mortal, SemiBandit, Types
from coaf.worlds.compare import compare
from coaf.worlds.optimum import Optimum, optimum, optimum_by_approximation
from coaf.worlds.patches import Patches
from coaf.worlds.play import play
from coaf.worlds.surfaces import Surface
from coaf.worlds.synthetic import Synthetic
from coaf.worlds.world import BulkWorld, World

__all__ = [
    "Batch",
    "BulkWorld",
    "ContextualBandit",
    "Mortal",
    "Optimum",
    "Patches",
    "Scene",
    "SemiBandit",
    "Surface",
    "Synthetic",
    "Types",
    "World",
    "check_world",
    "compare",
    "optimum",
    "optimum_by_approximation",
    "play",
]
