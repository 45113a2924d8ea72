"""Shards: keys, where transactions run, and what a wrong one changes."""

from collections import Counter
from typing import Any

import pytest

from ordercast.core import (
    Keys,
    LocalError,
    Refused,
    Service,
    ServiceFailed,
    ServiceType,
    Shard,
    operation,
    shard_of,
    transaction,
)
from tests.core.shards import AT, BANK, SHARDS, Shards, shard_type

ACCOUNTS = [f"account-{number}" for number in range(12)]
APART = ("account-0", next(key for key in ACCOUNTS if shard_of(key, SHARDS) != shard_of("account-0", SHARDS)))


def test_the_shard_of_a_key_never_changes() -> None:
    """A cluster that starts anew with its saved state must find its keys where they were."""
    assert shard_of("123456789", 1 << 32) == 0xCBF43926  # the check value of the published CRC-32
    keys = ("", "a", "b", "account-0", "account-1", "key-15", "\u00e4\u4e2d", "x" * 1000)
    assert [shard_of(key, 15) for key in keys] == [0, 12, 11, 0, 10, 9, 2, 0]
    assert {shard_of(key, 1) for key in keys} == {0}


def test_keys_spread_over_the_shards() -> None:
    counts = Counter(shard_of(f"key-{number}", 15) for number in range(15_000))
    assert len(counts) == 15
    assert 800 < min(counts.values()) <= max(counts.values()) < 1200


def test_keys_are_named_once_and_written_rather_than_read() -> None:
    assert Keys.of(["a", "b", "a"], ["c", "b", "c"]) == Keys(("a", "b"), ("c",))


def test_a_transaction_runs_in_each_shard_that_holds_a_key_of_it() -> None:
    shards = Shards(BANK)
    payload = BANK.find("transfer").pack((*APART, 5), {})
    assert BANK.groups(payload, SHARDS) == tuple(sorted(shard_of(key, SHARDS) for key in APART))
    assert BANK.groups(payload, 1) == (0,)
    assert shards.call("transfer", *APART, 5) is None
    assert shards.call("show", ACCOUNTS) == {APART[0]: -5, APART[1]: 5}


@pytest.mark.parametrize("shards", [1, 2, 3, 15])
def test_the_number_of_shards_changes_no_answer(shards: int) -> None:
    store = Shards(BANK, shards)
    assert [store.call("deposit", account, 10) for account in ACCOUNTS] == [10] * len(ACCOUNTS)
    for source, target in zip(ACCOUNTS, ACCOUNTS[5:], strict=False):
        store.call("transfer", source, target, 3)
    assert store.call("total", ACCOUNTS) == 120
    assert store.call("close", ACCOUNTS[0]) == 7
    assert store.call("show", ACCOUNTS[:2]) == {ACCOUNTS[1]: 7}


def test_an_exception_changes_nothing() -> None:
    class Half(Shard):
        @transaction(keys="key")
        def change(self, key: str, refuses: bool) -> None:
            self[key] = 1
            raise Refused("no") if refuses else RuntimeError("no")

    shards = Shards(shard_type(Half))
    before = shards.states()
    with pytest.raises(Refused):
        shards.call("change", "a", True)
    with pytest.raises(ServiceFailed, match="RuntimeError: no"):
        shards.call("change", "a", False)
    assert shards.states() == before


class Stray(Shard):
    """Touches keys that it did not name, in all ways there are."""

    @transaction(keys="named", reads="seen")
    def touch(self, named: list[str], seen: str, way: str, key: str) -> None:
        """Change all named keys, and touch another one."""
        for one in self.held:
            if one != seen:
                self[one] = 1
        ways: dict[str, Any] = {
            "get": lambda: self.get(key),
            "read": lambda: self[key],
            "write": lambda: self.__setitem__(key, 1),
            "remove": lambda: self.__delitem__(key),
            "ask": lambda: self.holds(key),
            "in": lambda: key in self,
        }
        try:
            ways[way]()
        except KeyError:
            raise
        except Exception:
            pass


@pytest.mark.parametrize("way", ["get", "read", "write", "remove", "ask", "in"])
def test_a_key_that_was_not_named_is_an_answer_and_changes_nothing_in_any_shard(way: str) -> None:
    """Also if the procedure catches the exception."""
    shards = Shards(shard_type(Stray))
    before = shards.states()
    with pytest.raises(ServiceFailed, match=r"WrongKey: .*'other', which it did not name"):
        shards.call("touch", ACCOUNTS, "seen", way, "other")
    assert shards.states() == before


def test_a_key_that_is_only_read_cannot_be_changed() -> None:
    shards = Shards(shard_type(Stray), 1)
    with pytest.raises(ServiceFailed, match="'seen', which it named as one that it reads"):
        shards.call("touch", ["a"], "seen", "write", "seen")
    assert shards.states() == Shards(shard_type(Stray), 1).states()


def test_a_key_of_another_shard_cannot_be_touched() -> None:
    shards = Shards(shard_type(Stray))
    with pytest.raises(ServiceFailed, match=r"another shard holds the key 'account-0'; ask self\.holds"):
        shards.call("touch", list(APART), APART[1], "get", APART[0])


def test_a_shard_refuses_what_names_none_of_its_keys() -> None:
    payload = BANK.find("deposit").pack((APART[0], 1), {})
    other = BANK.make(shard_of(APART[1], SHARDS), SHARDS)
    before = other.snapshot()
    assert b"names no key that this shard holds" in other.apply(payload, AT)
    assert other.snapshot() == before


def test_a_value_that_was_read_is_a_copy() -> None:
    class Lists(Shard):
        @transaction(keys="key")
        def append(self, key: str, value: int, assign: bool) -> list[int]:
            found: list[int] = self.get(key, [])
            found.append(value)
            if assign:
                self[key] = found
            return found

    shards = Shards(shard_type(Lists))
    shards.call("append", "a", 1, True)
    assert shards.call("append", "a", 2, False) == [1, 2]
    assert shards.call("append", "a", 3, False) == [1, 3]


def test_a_snapshot_has_all_keys() -> None:
    shards = Shards(BANK, 1)
    shards.call("deposit", "a", 5)
    other = Shards(BANK, 1)
    other.machines[0].restore(shards.states()[0])
    assert other.call("deposit", "a", 1) == 6
    with pytest.raises(LocalError, match="state of a shard cannot be read"):
        other.machines[0].restore(b"\xc1")
    assert other.call("deposit", "a", 1) == 7


def test_a_call_without_a_key_is_refused_before_it_is_sent() -> None:
    with pytest.raises(LocalError, match="total was called without a key"):
        BANK.find("total").pack(([],), {})


@pytest.mark.parametrize("key", [1, None, b"a", ["a"]])
def test_a_key_that_is_no_text_is_refused_before_it_is_sent(key: object) -> None:
    with pytest.raises(LocalError, match="wrong arguments for deposit"):
        BANK.find("deposit").pack((key, 1), {})


def test_bytes_that_call_nothing_are_refused() -> None:
    for payload in (b"", b"\x03nix", BANK.find("deposit").head + b"\xc1"):
        with pytest.raises(LocalError):
            BANK.groups(payload, SHARDS)
        assert BANK.make(0, 1).apply(payload, AT)[0] == 2


def test_declarations_that_cannot_be_kept_are_refused() -> None:
    with pytest.raises(LocalError, match="must name the parameters that hold its keys"):
        transaction()

    class Missing(Shard):
        @transaction(keys="nothing")
        def run(self, key: str) -> None: ...

    class Numbers(Shard):
        @transaction(keys="key")
        def run(self, key: list[int]) -> None: ...

    class Several(Shard):
        @transaction(keys="keys")
        def run(self, keys: list[str]) -> int:
            return 0

    class Plain(Shard):
        @operation
        def run(self, key: str) -> None: ...

    class Stateful(Shard):
        def __init__(self) -> None:
            self.count = 0

        @transaction(keys="key")
        def run(self, key: str) -> None: ...

    class NoShard(Service):
        @transaction(keys="key")
        def run(self, key: str) -> None: ...

    for service, text in (
        (Missing, "no parameter nothing"),
        (Numbers, "keys are text"),
        (Several, "say how their results become one"),
        (Plain, "decorate the method with @transaction"),
        (Stateful, "self.count cannot be set"),
        (NoShard, "only a subclass of ordercast.Shard"),
    ):
        with pytest.raises(LocalError, match=text):
            ServiceType.of(service).spec()


def test_a_service_is_cut_into_one_shard_a_group() -> None:
    spec = BANK.spec()
    key = next(key for key in ACCOUNTS if shard_of(key, SHARDS) == 2)
    payload = BANK.find("deposit").pack((key, 1), {})
    assert spec.for_group(2, SHARDS).make().apply(payload, AT)[0] == 0
    assert spec.for_group(1, SHARDS).make().apply(payload, AT)[0] == 2
    assert "transaction transfer" in spec.fingerprint
    assert "keys [source, target]" in spec.fingerprint


def test_the_answer_of_a_bad_shard_counts() -> None:
    class Fussy(Shard):
        @transaction(keys="keys", combine=max)
        def run(self, keys: list[str], bad: str) -> int:
            if bad in self.held:
                raise Refused(f"not {bad}")
            return len(self.held)

    shards = Shards(shard_type(Fussy))
    with pytest.raises(Refused, match=f"not {APART[1]}"):
        shards.call("run", list(APART), APART[1])
    assert shards.call("run", list(APART), "") == 1
