"""Options of view-synchronous multicast."""

from ordercast.components.membership import ViewOptions


class ViewSynchronousOptions(ViewOptions, frozen=True):
    """Timeouts and limits of view synchrony, and what members get when they join."""

    application_state: bool = False
    """Members that join a group, or come back, get the state that the applications of the others have then.
    """
