"""The version, where every room can read it; the only place that states it by hand."""

__version__ = "0.2.0.dev0"
