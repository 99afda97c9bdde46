"""Cryo-EM: grids, microscopes, and the decisions between them."""

from coaf.cryoem.checks.microscope import check_microscope
from coaf.cryoem.feedback import Feedback
from coaf.cryoem.grid import Grid, Hole, Patch, Shot, Square
from coaf.cryoem.images import Image, read_image, read_mrc, write_mrc
from coaf.cryoem.microscope import Microscope, Score, Survey
from coaf.cryoem.pilot import Choice, Left, Pilot
from coaf.cryoem.pilots.coaf import CoafPilot
from coaf.cryoem.recorded.build import build_recording
from coaf.cryoem.recorded.columns import Column, RecordingError
from coaf.cryoem.recorded.folder import write_recording
from coaf.cryoem.recorded.microscope import RecordedMicroscope
from coaf.cryoem.recorded.pace import measured_seconds
from coaf.cryoem.recorded.reading import read_recording
from coaf.cryoem.recorded.recording import Recording
from coaf.cryoem.recorded.replay import replay
from coaf.cryoem.recorded.seconds import Seconds
from coaf.cryoem.reward import Combined, GoodBelow, Graded, Particles, parse_reward
from coaf.cryoem.session.collect import collect
from coaf.cryoem.session.guard import Alarm, Guard
from coaf.cryoem.session.session import Session
from coaf.cryoem.simulator.conditions import World
from coaf.cryoem.simulator.record import record
from coaf.cryoem.simulator.simulator import Simulator
from coaf.cryoem.timing import FAST, SLOW, LearnedTiming, Timing
from coaf.cryoem.vision.features import (
    HOLE_FEATURES,
    SQUARE_FEATURES,
    hole_features,
    square_features,
)
from coaf.cryoem.vision.holes import find_holes
from coaf.cryoem.vision.patches import group_holes

__all__ = [
    "FAST",
    "HOLE_FEATURES",
    "SLOW",
    "SQUARE_FEATURES",
    "Alarm",
    "Choice",
    "CoafPilot",
    "Column",
    "Combined",
    "Feedback",
    "GoodBelow",
    "Graded",
    "Grid",
    "Guard",
    "Hole",
    "Image",
    "LearnedTiming",
    "Left",
    "Microscope",
    "Particles",
    "Patch",
    "Pilot",
    "RecordedMicroscope",
    "Recording",
    "RecordingError",
    "Score",
    "Seconds",
    "Session",
    "Shot",
    "Simulator",
    "Square",
    "Survey",
    "Timing",
    "World",
    "build_recording",
    "check_microscope",
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
    "replay",
    "square_features",
    "write_mrc",
    "write_recording",
]
