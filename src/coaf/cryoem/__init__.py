"""Cryo-EM: grids, microscopes, and the decisions between them."""

from coaf.cryoem.coaf_pilot import CoafPilot
from coaf.cryoem.collect import collect
from coaf.cryoem.features import HOLE_FEATURES, SQUARE_FEATURES, hole_features, square_features
from coaf.cryoem.feedback import Feedback
from coaf.cryoem.grid import Grid, Hole, Patch, Shot, Square
from coaf.cryoem.guard import Alarm, Guard
from coaf.cryoem.holes import find_holes
from coaf.cryoem.ice import World
from coaf.cryoem.images import Image, read_image, read_mrc, write_mrc
from coaf.cryoem.microscope import Microscope, Score, Survey
from coaf.cryoem.microscope_checks import check_microscope
from coaf.cryoem.patches import group_holes
from coaf.cryoem.pilot import Choice, Left, Pilot
from coaf.cryoem.recorded import Recording, read_recording
from coaf.cryoem.recorded_microscope import RecordedMicroscope
from coaf.cryoem.replay import replay
from coaf.cryoem.reward import Combined, GoodBelow, Graded, Particles, parse_reward
from coaf.cryoem.session import Session
from coaf.cryoem.sim_record import record
from coaf.cryoem.simulator import Simulator
from coaf.cryoem.timing import FAST, SLOW, LearnedTiming, Timing

__all__ = [
    "FAST",
    "HOLE_FEATURES",
    "SLOW",
    "SQUARE_FEATURES",
    "Alarm",
    "Choice",
    "CoafPilot",
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
    "Score",
    "Session",
    "Shot",
    "Simulator",
    "Square",
    "Survey",
    "Timing",
    "World",
    "check_microscope",
    "collect",
    "find_holes",
    "group_holes",
    "hole_features",
    "parse_reward",
    "read_image",
    "read_mrc",
    "read_recording",
    "record",
    "replay",
    "square_features",
    "write_mrc",
]
