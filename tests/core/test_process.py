"""The contract between a protocol and its driver, as far as the types hold it."""

import inspect

import pytest

from ordercast.core import Env, Explanation, Member, Message, NodeId, Process
from ordercast.testing import RecordingEnv


class Quiet(Process):
    def on_message(self, source: NodeId, message: Message) -> None:
        pass

    def explain(self) -> Explanation:
        return Explanation({"role": "quiet"})


@pytest.mark.parametrize("kind", [Env, Process, Member])
def test_the_contract_itself_is_abstract(kind: type) -> None:
    assert inspect.isabstract(kind)


@pytest.mark.parametrize("missing", ["on_message", "explain"])
def test_a_process_must_handle_messages_and_explain_itself(missing: str, env: RecordingEnv) -> None:
    methods = {"on_message": Quiet.on_message, "explain": Quiet.explain}
    del methods[missing]
    half_built = type("HalfBuilt", (Process,), methods)
    with pytest.raises(TypeError, match=missing):
        half_built(env)


def test_a_member_must_take_messages(env: RecordingEnv) -> None:
    deaf = type("Deaf", (Quiet, Member), {})
    with pytest.raises(TypeError, match="submit"):
        deaf(env)


def test_starting_and_timers_are_optional_and_do_nothing(env: RecordingEnv) -> None:
    process = Quiet(env)
    process.on_start({})
    process.on_timer("any")
    assert (env.sent, env.timers, env.delivered, env.saved) == ([], {}, [], {})


@pytest.mark.parametrize("effect", sorted(Env.__abstractmethods__))
def test_no_effect_answers(effect: str) -> None:
    # A process cannot depend on what an effect returns: drivers carry effects out when they like.
    assert inspect.signature(getattr(Env, effect)).return_annotation == "None"


def test_the_effects_are_these_six() -> None:
    assert Env.__abstractmethods__ == {"send", "multicast", "set_timer", "cancel_timer", "deliver", "save"}
