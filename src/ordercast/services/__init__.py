"""Services that come with ordercast, and services of users by their names."""

from ordercast.services.built_in import PLAIN
from ordercast.services.find import BUILT_IN, find_service, service_class, workload_of
from ordercast.services.sharded import SHARDED
from ordercast.services.workload import Operations, ServiceWorkload

__all__ = [
    "BUILT_IN",
    "PLAIN",
    "SHARDED",
    "Operations",
    "ServiceWorkload",
    "find_service",
    "service_class",
    "workload_of",
]
