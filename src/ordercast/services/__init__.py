"""Services that come with ordercast, and services of users by their names."""

from ordercast.services.built_in import BUILT_IN
from ordercast.services.find import find_service, service_class, workload_of
from ordercast.services.workload import Operations, ServiceWorkload

__all__ = ["BUILT_IN", "Operations", "ServiceWorkload", "find_service", "service_class", "workload_of"]
