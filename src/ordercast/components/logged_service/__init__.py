"""A service that a consensus log replicates: what Multi-Paxos and Fast Paxos share."""

from ordercast.components.logged_service.client import LogClient
from ordercast.components.logged_service.deployment import GUARANTEES, deploy_logged
from ordercast.components.logged_service.logged_service import LoggedService
from ordercast.components.logged_service.options import LogOptions

__all__ = ["GUARANTEES", "LogClient", "LogOptions", "LoggedService", "deploy_logged"]
