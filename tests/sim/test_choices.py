"""A wrong name in a scenario is answered with the names that there are."""

import pytest

from ordercast.scenario.spec import ScenarioError, to_scenario

WRONG = [
    ({"options": {"flush": "often"}}, "options.flush", "periodic"),
    ({"workload": {"kind": "poison"}}, "workload.kind", "poisson"),
    ({"fault": [{"kind": "crsh", "host": 1, "at_ms": 1}]}, "fault[0].kind", "crash"),
    ({"network": {"latency": {"kind": "links", "topology": "stra"}}}, "network.latency.topology", "star"),
]


@pytest.mark.parametrize(("content", "key", "name"), WRONG, ids=[key for _, key, _ in WRONG])
def test_a_wrong_name_is_told_with_the_choices(content: dict[str, object], key: str, name: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        to_scenario({"protocol": "hydra", **content}).plan()
    assert caught.value.key == key
    assert name in caught.value.what.partition("there are: ")[2]
