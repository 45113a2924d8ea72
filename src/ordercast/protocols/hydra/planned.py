"""A receiver's part in the step that the configuration service plans (section 4.4).

- *idle*: nothing is planned, as far as it knows.
- *asked*: a step is planned, and it has no report on it yet. To report on an addition it needs a flush.
- *reported*: its report stands, and is sent again whenever it is asked again.

A decision ends each stage, even if the plan never came here. Another plan takes the place of the one
before; a service that is correct plans nothing else before it has decided.
"""

from enum import Enum

import msgspec

from ordercast.core import LifeCycle, Nanos, RemoteError
from ordercast.protocols.hydra.messages import Plans, Report


class Stage(Enum):
    """The stage of the planned step at a receiver."""

    IDLE = "idle"
    ASKED = "asked"
    REPORTED = "reported"


class StageEvent(Enum):
    """What happens to the planned step."""

    PLAN = "plan"
    REPORT = "report"
    DECIDE = "decide"


STEP_LIFE = LifeCycle(
    "planned step",
    (Stage.IDLE,),
    {
        (Stage.IDLE, StageEvent.PLAN): Stage.ASKED,
        (Stage.ASKED, StageEvent.PLAN): Stage.ASKED,
        (Stage.REPORTED, StageEvent.PLAN): Stage.ASKED,
        (Stage.ASKED, StageEvent.REPORT): Stage.REPORTED,
        (Stage.IDLE, StageEvent.DECIDE): Stage.IDLE,
        (Stage.ASKED, StageEvent.DECIDE): Stage.IDLE,
        (Stage.REPORTED, StageEvent.DECIDE): Stage.IDLE,
    },
    blame=RemoteError,  # all events come from the configuration service
)


class PlannedStep:
    """The planned step, if there is one, and what was reported on it."""

    __slots__ = ("plan", "report", "since", "stage")

    def __init__(self) -> None:
        self.stage = Stage.IDLE
        self.plan: Plans | None = None
        self.report: Report | None = None
        self.since: Nanos = 0
        """When this receiver learned of the plan."""

    def propose(self, plan: Plans, now: Nanos) -> None:
        """A step is planned; one that is known already changes nothing."""
        if plan != self.plan:
            self.stage = STEP_LIFE.after(self.stage, StageEvent.PLAN)
            self.plan, self.report, self.since = plan, None, now

    def answer(self, report: Report) -> None:
        """Note the report that was sent."""
        self.stage = STEP_LIFE.after(self.stage, StageEvent.REPORT)
        self.report = report

    def renumber(self, step: int) -> None:
        """A receiver was reborn, which is a step of its own: the plan and the report stand for the next."""
        if self.report is not None:
            self.report = msgspec.structs.replace(self.report, step=step)

    def decide(self) -> None:
        """Note that a step is decided, this one or one that this receiver never learned of."""
        self.stage = STEP_LIFE.after(self.stage, StageEvent.DECIDE)
        self.plan = self.report = None

    def restore(self, plan: Plans | None, report: Report | None, now: Nanos) -> None:
        """Go on where an earlier life was; the time to hear of a new sequencer begins anew."""
        if plan is not None:
            self.propose(plan, now)
        if report is not None:
            self.answer(report)
