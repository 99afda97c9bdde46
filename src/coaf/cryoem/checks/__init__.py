"""Contracts of this room, shipped to users."""
