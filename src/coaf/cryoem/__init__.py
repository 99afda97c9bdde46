"""Cryo-EM: grids, microscopes, and the decisions between them."""

from typing import Any
from warnings import warn

from coaf.cryoem.checks.microscope import check_microscope
from coaf.cryoem.checks.pilot import check_pilot
from coaf.cryoem.checks.reward import check_reward
from coaf.cryoem.feedback import Feedback
from coaf.cryoem.grid import Grid, Hole, Patch, Shot, Square
from coaf.cryoem.images import Image, read_image, read_mrc, write_mrc
from coaf.cryoem.microscope import Autoloader, Microscope, Rehearsal, Score, Survey
from coaf.cryoem.pilot import Choice, Left, Open, Other, Pilot, Scored
from coaf.cryoem.pilots.coaf import CoafPilot
from coaf.cryoem.pilots.knowledge import Knowledge
from coaf.cryoem.recorded.build import build_recording
from coaf.cryoem.recorded.columns import Column, RecordingError
from coaf.cryoem.recorded.export import recording_of
from coaf.cryoem.recorded.folder import write_recording
from coaf.cryoem.recorded.microscope import RecordedMicroscope
from coaf.cryoem.recorded.pace import measured_seconds
from coaf.cryoem.recorded.reading import read_recording
from coaf.cryoem.recorded.recording import Recording
from coaf.cryoem.recorded.replay import replay
from coaf.cryoem.recorded.seconds import Seconds
from coaf.cryoem.reward import Combined, GoodBelow, Graded, Particles, parse_reward
from coaf.cryoem.session.collect import collect
from coaf.cryoem.session.engine import Engine
from coaf.cryoem.session.events import Event, Settings
from coaf.cryoem.session.guard import Alarm, Guard
from coaf.cryoem.session.instructions import Instruction, Plan
from coaf.cryoem.session.session import Session
from coaf.cryoem.simulator.cassette import Cassette
from coaf.cryoem.simulator.conditions import Conditions
from coaf.cryoem.simulator.record import record
from coaf.cryoem.simulator.simulator import Simulator
from coaf.cryoem.timing import FAST, SLOW, LearnedTiming, Timing
from coaf.cryoem.vision.features import HOLE_FEATURES, hole_features
from coaf.cryoem.vision.holes import find_holes
from coaf.cryoem.vision.patches import group_holes
from coaf.cryoem.vision.square_features import SQUARE_FEATURES, square_features

__all__ = [
    "FAST",
    "HOLE_FEATURES",
    "SLOW",
    "SQUARE_FEATURES",
    "Alarm",
    "Autoloader",
    "Cassette",
    "Choice",
    "CoafPilot",
    "Column",
    "Combined",
    "Conditions",
    "Engine",
    "Event",
    "Feedback",
    "GoodBelow",
    "Graded",
    "Grid",
    "Guard",
    "Hole",
    "Image",
    "Instruction",
    "Knowledge",
    "LearnedTiming",
    "Left",
    "Microscope",
    "Open",
    "Other",
    "Particles",
    "Patch",
    "Pilot",
    "Plan",
    "RecordedMicroscope",
    "Recording",
    "RecordingError",
    "Rehearsal",
    "Score",
    "Scored",
    "Seconds",
    "Session",
    "Settings",
    "Shot",
    "Simulator",
    "Square",
    "Survey",
    "Timing",
    "build_recording",
    "check_microscope",
    "check_pilot",
    "check_reward",
    "collect",
    "find_holes",
    "group_holes",
    "hole_features",
    "measured_seconds",
    "parse_reward",
    "read_image",
    "read_mrc",
    "read_recording",
    "record",
    "recording_of",
    "replay",
    "square_features",
    "write_mrc",
    "write_recording",
]


def __getattr__(name: str) -> Any:
    if name == "World":
        warn("coaf.cryoem.World is coaf.cryoem.Conditions", DeprecationWarning, stacklevel=2)
        return Conditions
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
