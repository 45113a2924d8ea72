"""Services as users write them: typed operations, results, states and errors."""

from typing import Any

import pytest

from ordercast.core import (
    Context,
    LocalError,
    Outcome,
    Refused,
    RemoteError,
    Service,
    ServiceFailed,
    ServiceType,
    StateMachine,
    message_id,
    operation,
    outcome_of,
    read,
)


class Library(Service):
    """Readers and the books that they have."""

    readers: set[str]

    def __init__(self) -> None:
        self.readers = set()
        self.books: dict[str, list[str]] = {}

    @operation
    def lend(self, reader: str, book: str, days: int = 14) -> int:
        if any(book in books for books in self.books.values()):
            raise Refused(f"{book} is not here")
        self.readers.add(reader)
        self.books.setdefault(reader, []).append(book)
        return self.context.now_ns + days

    @operation
    def crash(self) -> None:
        raise RuntimeError(f"at {object()}")

    @operation
    def wrong(self) -> int:
        return "text"  # type: ignore[return-value]

    @operation
    def draw(self) -> float:
        return self.context.rng.random()

    @read
    def has(self, reader: str) -> list[str]:
        return self.books.get(reader, [])


KIND = ServiceType.of(Library)
CONTEXT = Context(message_id(7, 3), 100)


def call(machine: StateMachine, name: str, *args: object) -> object:
    kind = KIND.find(name)
    return kind.unpack_result(machine.apply(kind.pack(args, {}), CONTEXT))


def test_operations_run_with_their_arguments() -> None:
    machine = KIND.spec().make()
    assert call(machine, "lend", "ann", "emma") == 114
    assert call(machine, "lend", "ann", "ulysses", 3) == 103
    assert call(machine, "has", "ann") == ["emma", "ulysses"]


def test_refusals_and_failures_are_answers() -> None:
    machine = KIND.spec().make()
    call(machine, "lend", "ann", "emma")
    with pytest.raises(Refused, match="emma is not here"):
        call(machine, "lend", "bob", "emma")
    with pytest.raises(ServiceFailed, match="RuntimeError: at <object object at 0x>"):
        call(machine, "crash")  # addresses differ between replicas, so they are left out
    with pytest.raises(ServiceFailed, match="Expected `int`"):
        call(machine, "wrong")


def test_no_result_is_one_only_where_it_is_declared() -> None:
    class Silent(Service):
        @operation
        def nothing(self) -> None:
            pass

        @operation
        def forgetful(self) -> int:
            return None  # type: ignore[return-value]

        @operation
        def sometimes(self, value: int | None) -> int | None:
            return value

    kinds = ServiceType.of(Silent)
    machine = kinds.spec().make()

    def run(name: str, *args: object) -> object:
        kind = kinds.find(name)
        return kind.unpack_result(machine.apply(kind.pack(args, {}), CONTEXT))

    assert run("nothing") is None
    assert (run("sometimes", None), run("sometimes", 3)) == (None, 3)
    with pytest.raises(ServiceFailed, match="Expected `int`, got"):
        run("forgetful")


@pytest.mark.parametrize(
    "operation", [b"", b"\x00", b"\x04lend", b"\x04lend\x91\x01", b"\xffx", b"\x03pop\x90"]
)
def test_malformed_operations_are_answered_as_failed(operation: bytes) -> None:
    machine = KIND.spec().make()
    before = machine.snapshot()
    assert outcome_of(machine.apply(operation, CONTEXT)) is Outcome.FAILED
    assert machine.snapshot() == before


def test_a_read_runs_reads_only() -> None:
    machine = KIND.spec().make()
    assert outcome_of(machine.read(KIND.find("has").pack(("ann",), {}), CONTEXT)) is Outcome.ANSWERED
    lend = KIND.find("lend").pack(("ann", "emma"), {})
    assert outcome_of(machine.read(lend, CONTEXT)) is Outcome.FAILED
    assert call(machine, "has", "ann") == []


@pytest.mark.parametrize(
    ("args", "kwargs"), [((), {}), (("a", 1), {}), (("a", "b", "c"), {}), (("a",), {"x": 1})]
)
def test_wrong_arguments_are_refused_before_anything_is_sent(
    args: tuple[object, ...], kwargs: dict[str, object]
) -> None:
    with pytest.raises(
        LocalError, match=r"wrong arguments for lend\(reader: str, book: str, days: int = 14\)"
    ):
        KIND.find("lend").pack(args, kwargs)


class Box(Service):
    """Anything."""

    def __init__(self) -> None:
        self.thing: Any = None

    @operation
    def put(self, thing: Any) -> None:
        self.thing = thing


def nested(depth: int) -> object:
    found: object = 1
    for _ in range(depth):
        found = [found]
    return found


def deeper_by(calls: int, machine: StateMachine, payload: bytes) -> bytes:
    """Apply an operation where the stack is deeper by so many calls."""
    return deeper_by(calls - 1, machine, payload) if calls else machine.apply(payload, CONTEXT)


def test_arguments_that_a_replica_with_a_deeper_stack_cannot_read_are_not_sent() -> None:
    kind, machine = ServiceType.of(Box).find("put"), ServiceType.of(Box).spec().make()
    sent = 0
    for depth in range(0, 3000, 50):
        try:
            payload = kind.pack((nested(depth),), {})
        except LocalError as error:
            assert str(error) == "wrong arguments for put: they are nested too deeply"
        else:
            assert outcome_of(deeper_by(150, machine, payload)) is Outcome.ANSWERED
            sent += 1
    assert 4 < sent < 60


@pytest.mark.parametrize("depth", [1_500, 100_000])
def test_operations_that_are_nested_too_deeply_are_answered_as_failed(depth: int) -> None:
    machine, head = ServiceType.of(Box).spec().make(), ServiceType.of(Box).find("put").head
    assert outcome_of(machine.apply(head + b"\x91" * depth, CONTEXT)) is Outcome.FAILED


def test_words_of_a_command_line_become_arguments() -> None:
    lend = KIND.find("lend")
    assert lend.from_words(["ann", "7", "3"]) == lend.pack(("ann", "7", 3), {})
    with pytest.raises(LocalError, match="wrong arguments"):
        lend.from_words(["ann", "emma", "soon"])


def test_a_state_survives_a_snapshot_and_sets_have_one_order() -> None:
    machine, other = KIND.spec().make(), KIND.spec().make()
    for reader in ("ann", "bob", "cy"):
        call(machine, "lend", reader, f"{reader}'s book")
    other.restore(machine.snapshot())
    assert other.snapshot() == machine.snapshot()
    assert call(other, "has", "cy") == ["cy's book"]
    for reader in ("cy", "bob", "ann"):  # the same set, put together in another order
        call(other, "lend", reader, f"another of {reader}")
        call(machine, "lend", reader, f"another of {reader}")
    assert other.snapshot() == machine.snapshot()


def test_random_numbers_are_the_same_at_all_replicas() -> None:
    machines = [KIND.spec().make() for _ in range(2)]
    drawn = {
        machine.apply(KIND.find("draw").pack((), {}), Context(message_id(7, 3), now))
        for now, machine in enumerate(machines)
    }
    assert len(drawn) == 1


def test_a_malformed_result_is_the_fault_of_the_replica() -> None:
    with pytest.raises(RemoteError, match="malformed result of has"):
        KIND.find("has").unpack_result(b"\x00\xc1")


def test_an_unknown_operation_is_named_with_all_that_there_are() -> None:
    with pytest.raises(
        LocalError, match="Library has no operation 'steal'; it has: crash, draw, has, lend, wrong"
    ):
        KIND.find("steal")


class NoTypes(Service):
    @operation
    def put(self, key) -> None:  # type: ignore[no-untyped-def]
        pass


class NoResult(Service):
    @operation
    def put(self, key: str):  # type: ignore[no-untyped-def]
        pass


class Starred(Service):
    @operation
    def put(self, *keys: str) -> None:
        pass


class Unsendable(Service):
    @operation
    def put(self, key: type[int] | type[str]) -> None:
        pass


class Nothing(Service):
    pass


@pytest.mark.parametrize(
    ("service", "what"),
    [
        (NoTypes, r"NoTypes\.put has no type for its parameter key: annotate it"),
        (NoResult, r"NoResult\.put has no type for its result: annotate it"),
        (Starred, r"Starred\.put: parameter keys must be an ordinary one"),
        (Nothing, "Nothing has no operations: decorate"),
        (int, "int is not a subclass of ordercast.Service"),
        (7, "7 is not a subclass of ordercast.Service"),
    ],
)
def test_incomplete_services_are_refused(service: object, what: str) -> None:
    with pytest.raises(LocalError, match=what):
        ServiceType.of(service)


class Unsaved(Service):
    def __init__(self) -> None:
        self.stream = open  # a function cannot be saved

    @read
    def get(self) -> int:
        return 1


class Undeclared(Service):
    def __init__(self) -> None:
        self.names = {"ann"}

    @read
    def get(self) -> int:
        return 1


class Unmade(Service):
    def __init__(self, size: int) -> None:
        self.size = size

    @read
    def get(self) -> int:
        return 1


@pytest.mark.parametrize(
    ("service", "what"),
    [
        (Unsaved, "the state of Unsaved cannot be saved"),
        (Undeclared, "names is a set and comes back as a list; declare its type in the class"),
        (Unmade, r"Unmade\(\) cannot be made: TypeError"),
    ],
)
def test_services_whose_state_cannot_be_saved_are_refused_at_the_start(
    service: type[Service], what: str
) -> None:
    with pytest.raises(LocalError, match=what):
        ServiceType.of(service).spec()


def test_a_snapshot_of_another_service_is_refused() -> None:
    with pytest.raises(LocalError, match="the saved state belongs to another service than Library"):
        KIND.spec().check("Other; operation put(key: str) -> None")
