"""The online order against a plain search for cycles."""

from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from ordercast.judge.online.precedence import LABEL_GAP, Precedence

VERTICES = 9
Edges = list[tuple[int, int]]


def reaches(edges: Edges, start: int, goal: int) -> bool:
    """Whether there is a path, by plain depth-first search."""
    seen, todo = {start}, [start]
    while todo:
        here = todo.pop()
        if here == goal:
            return True
        new = [b for a, b in edges if a == here and b not in seen]
        seen.update(new)
        todo.extend(new)
    return False


ENDS = st.integers(0, VERTICES)


@given(st.lists(st.tuples(ENDS, ENDS), max_size=60), st.sampled_from([1, 2, LABEL_GAP]))
def test_agrees_with_depth_first_search(sequence: Edges, label_gap: int) -> None:
    with patch("ordercast.judge.online.precedence.LABEL_GAP", label_gap):
        agree(sequence)


def agree(sequence: Edges) -> None:
    """Add the edges one by one, and check every answer and the order after each."""
    precedence = Precedence()
    kept: Edges = []
    for step, (before, after) in enumerate(sequence):
        path = precedence.add(before, after, step, step, step)
        if reaches(kept, after, before):
            assert path is not None
            assert_path(path, kept, after, before)
        else:
            assert path is None
            kept.append((before, after))
        order = list(precedence)
        place = {vertex: index for index, vertex in enumerate(order)}
        assert len(place) == len(order) == len(precedence)
        assert set(place) == {v for edge in sequence[: step + 1] for v in edge}
        assert all(place[a] < place[b] for a, b in kept)
        labels = [precedence._label[vertex] for vertex in order]
        assert labels == sorted(set(labels))


def assert_path(path: list, kept: Edges, start: int, goal: int) -> None:  # type: ignore[type-arg]
    """The proof of a cycle goes along edges that are there, from start to goal."""
    here = start
    for edge in path:
        assert edge.before == here
        assert (edge.before, edge.after) in kept
        here = edge.after
    assert here == goal


def test_new_vertices_go_to_the_end() -> None:
    precedence = Precedence()
    for vertex in (5, 3, 9, 3):
        precedence.add_vertex(vertex)
    assert list(precedence) == [5, 3, 9]


def test_witnesses_of_the_first_edge_are_kept() -> None:
    precedence = Precedence()
    assert precedence.add(1, 2, 7, 10, 20) is None
    assert precedence.add(1, 2, 8, 11, 21) is None
    path = precedence.add(2, 1, 9, 12, 22)
    assert path is not None
    assert [tuple(edge) for edge in path] == [(1, 2, 7, 10, 20)]


def test_a_vertex_is_not_before_itself() -> None:
    assert Precedence().add(1, 1, 0, 0, 0) == []


def test_labels_are_spread_again_when_a_gap_is_used_up() -> None:
    # Each new vertex is forced between the last one and the end marker, in ever smaller gaps.
    precedence = Precedence()
    precedence.add(0, 1, 0, 0, 0)
    count = LABEL_GAP.bit_length() * 3
    for vertex in range(2, count):
        previous = vertex - 1 if vertex > 2 else 0
        assert precedence.add(previous, vertex, 0, 0, 0) is None
        assert precedence.add(vertex, 1, 0, 0, 0) is None
    assert list(precedence) == [0, *range(2, count), 1]
    labels = [precedence._label[vertex] for vertex in precedence]
    assert labels == sorted(set(labels))
    assert precedence.add(1, 2, 0, 0, 0) is not None
