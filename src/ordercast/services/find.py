"""Services by name: a built-in one, or a class of the user as "module:Class"."""

import importlib
import sys
from pathlib import Path

from ordercast.core import LocalError, Service, ServiceSpec, ServiceType, place_of
from ordercast.services.built_in import PLAIN
from ordercast.services.draw import by_types
from ordercast.services.sharded import SHARDED
from ordercast.services.shop import TIERED
from ordercast.services.workload import ServiceWorkload

BUILT_IN = PLAIN | SHARDED | TIERED
"""The built-in services by name."""


def names_in(name: str) -> list[str]:
    """The names of the services of several groups, which are separated by commas; mostly it is one."""
    return [one.strip() for one in name.split(",")]


def service_class(name: str, folder: Path | None = None, group: int = 0) -> type[Service]:
    """The class with this name; a module is looked for in `folder` first. `LocalError` if there is none. If
    each group has a service of its own, it is that of `group`."""
    names = names_in(name)
    if len(names) > 1:
        if not 0 <= group < len(names):
            raise LocalError(f"there is no service for group {group} in '{name}'")
        name = names[group]
    if name in BUILT_IN:
        return BUILT_IN[name].service
    module_name, colon, class_name = name.partition(":")
    if not colon or not module_name or not class_name:
        raise LocalError(
            f"no service '{name}'; name a class as module:Class, or one of: {', '.join(BUILT_IN)}"
        )
    module = _import(name, module_name, folder)
    found = getattr(module, class_name, None)
    if found is None:
        raise LocalError(f"service {name}: the module {module_name} has no {class_name}")
    return ServiceType.of(found).service


def find_service(name: str, folder: Path | None = None) -> ServiceSpec:
    """The service with this name, checked; `LocalError` if it cannot be replicated. Several names give each
    group its own service."""
    names = names_in(name)
    if len(names) > 1:
        return ServiceSpec.of_groups([find_service(one, folder) for one in names])
    return ServiceType.of(service_class(name, folder)).spec(name)


def workload_of(name: str, folder: Path | None = None) -> ServiceWorkload:
    """How operations of a service are drawn: by the static method `generate` of its class, if it has one, and
    otherwise by the types of their parameters. Of several services, clients call the first."""
    name = names_in(name)[0]
    if name in BUILT_IN:
        return BUILT_IN[name]
    service = service_class(name, folder)
    return ServiceWorkload(service, getattr(service, "generate", None) or by_types(ServiceType.of(service)))


def _import(name: str, module_name: str, folder: Path | None) -> object:
    place = (folder or Path.cwd()).resolve()
    _forget_namesake(module_name, place)
    added = str(place) not in sys.path
    if added:
        sys.path.insert(0, str(place))
    try:
        return importlib.import_module(module_name)
    except Exception as error:  # whatever the module of a user raises
        if isinstance(error, ModuleNotFoundError) and error.name == module_name:
            what = f"there is no module {module_name} in {place} or among the installed ones"
        else:
            what = f"the module {module_name} cannot be imported: {type(error).__name__}: {error}"
            what += f" ({place_of(error)})"
        raise LocalError(f"service {name}: {what}") from error
    finally:
        if added:
            sys.path.remove(str(place))


def _forget_namesake(module_name: str, place: Path) -> None:
    """Forget a module that was imported from another folder, if this folder has one with its name."""
    known, here = sys.modules.get(module_name), place / f"{module_name.replace('.', '/')}.py"
    if known is not None and here.exists() and getattr(known, "__file__", None) != str(here):
        del sys.modules[module_name]
        importlib.invalidate_caches()
