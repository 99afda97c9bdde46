"""A microscope driven to the end, and the engine that did it."""

from collections.abc import Callable, Iterator
from typing import Any

from coaf.cryoem.microscope import Microscope
from coaf.cryoem.pilot import Pilot
from coaf.cryoem.pilots.catalogue import pilot_for
from coaf.cryoem.reward import Reward
from coaf.cryoem.session.collect import GOOD, Driver
from coaf.cryoem.session.engine import Engine
from coaf.cryoem.session.events import Instructed, Settings
from coaf.cryoem.session.instructions import Instruction


def drive(
    microscope: Microscope,
    pilot: str | Callable[[Settings], Pilot],
    *,
    hours: float,
    reward: Reward = GOOD,
    **more: Any,
) -> Engine:
    """The engine after a session of a pilot, given by its name or by what makes it."""
    settings = Settings(
        pilot=pilot if isinstance(pilot, str) else "",
        reward=str(reward),
        hours=hours,
        columns=microscope.feature_names,
        timing=microscope.timing,
        **more,
    )
    make = pilot_for if isinstance(pilot, str) else pilot
    engine = Engine(make=make, rewards=lambda text: reward)
    driver = Driver(microscope, engine)
    driver.start(settings)
    driver.run()
    return engine


def instructed(engine: Engine) -> Iterator[tuple[float, Instruction]]:
    """What was instructed, and when."""
    for event in engine.events:
        if isinstance(event, Instructed):
            yield event.time, event.instruction
