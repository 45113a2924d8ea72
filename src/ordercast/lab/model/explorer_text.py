"""The steps of a counterexample, in words."""

from ordercast.core import Carrier, Delivery, Dropped, Plan, View
from ordercast.lab.model.explorer_world import Boot, Event, Jump, Packet, Submission, Timer


def describe(event: Event, plan: Plan) -> str:
    """What happens, and where."""
    roles = [f"{node.role} {node.id}" for node in plan.nodes]
    match event:
        case Packet(source, to, message):
            return f"{roles[to]} gets {message} from {roles[source]}"
        case Timer(node, timer):
            return f"timer '{timer}' of {roles[node]} goes off"
        case Jump(node, by):
            return f"clock of {roles[node]} jumps by {by}"
        case Boot(node):
            return f"{roles[node]} starts"
        case Submission(node, _, payload):
            return f"{roles[node]} is given {payload.decode(errors='replace')}"


def name(delivery: Delivery) -> str:
    """What is delivered."""
    match delivery:
        case Carrier():
            place = f" at clock {delivery.stamp.clock} of {delivery.stamp.issuer}" if delivery.stamp else ""
            return f"{delivery.payload.decode(errors='replace')}{place}"
        case Dropped():
            more = f" and {delivery.count - 1} more" if delivery.count > 1 else ""
            return f"notice of the loss of number {delivery.number}{more} of {delivery.issuer}"
        case View():
            issuer = f" {delivery.stamp.issuer}" if delivery.stamp else ""
            return f"view {delivery.config} ({delivery.change}{issuer})"
        case _:
            return str(delivery)
