"""A service that does not answer: when it counts as silent, and how it is heard again."""

from ordercast.net.gateway.silence import Silence


def test_a_service_is_silent_when_a_call_has_waited_without_any_answer() -> None:
    silence = Silence(5.0)
    silence.begin(100.0)
    assert silence.admit(104.9)
    assert not silence.admit(105.0)


def test_answers_to_others_are_signs_of_life() -> None:
    silence = Silence(5.0)
    silence.begin(100.0)
    silence.end(silence.begin(103.0), 104.0, heard=True)
    assert silence.admit(108.9)
    assert not silence.admit(109.0)


def test_one_call_at_a_time_asks_whether_it_is_back() -> None:
    silence = Silence(5.0)
    silence.end(silence.begin(100.0), 160.0, heard=False)
    assert silence.admit(160.0)
    probe = silence.begin(160.0)
    assert not silence.admit(160.1)
    silence.end(probe, 170.0, heard=False)
    probe = silence.begin(200.0)
    silence.end(probe, 200.1, heard=True)
    silence.begin(200.1)
    assert silence.admit(200.2), "it is back"


def test_who_was_not_called_for_long_is_not_silent() -> None:
    silence = Silence(5.0)
    silence.end(silence.begin(0.0), 0.1, heard=True)
    silence.begin(1000.0)
    assert silence.admit(1004.9)
