"""The state of applications, brought to the nodes that join a group."""

from ordercast.components.application_state.deployment import with_application_state
from ordercast.components.application_state.member import StatefulMember
from ordercast.components.application_state.messages import MESSAGES

__all__ = ["MESSAGES", "StatefulMember", "with_application_state"]
