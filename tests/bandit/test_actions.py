"""Action spaces: what they allow, and what they say about settings that do not fit."""

import dataclasses
import itertools
from collections import Counter

import numpy as np
import pytest

from coaf.bandit.actions import Actions, AnySubset, AtMost, Capped, Exactly, Grouped, Listed, OneOf

GROUPS = np.array([7, 7, 7, 2])


def allowed(actions: Actions, n: int = 4) -> set[tuple[int, ...]]:
    subsets = [s for k in range(n + 1) for s in itertools.combinations(range(n), k)]
    return {s for s in subsets if actions.allows(np.isin(np.arange(n), s), GROUPS[:n])}


def test_counts() -> None:
    assert len(allowed(AnySubset())) == 16
    assert allowed(AtMost(2)) == {s for s in allowed(AnySubset()) if len(s) <= 2}
    assert allowed(Exactly(3)) == {s for s in allowed(AnySubset()) if len(s) == 3}
    assert allowed(Exactly(0)) == {()}
    assert allowed(OneOf()) == {(0,), (1,), (2,), (3,)}


def test_groups() -> None:
    def within(limits: dict[int, int]) -> set[tuple[int, ...]]:
        found = set()
        for subset in allowed(AnySubset()):
            taken = Counter(GROUPS[list(subset)].tolist())
            if all(taken[label] <= limit for label, limit in limits.items()):
                found.add(subset)
        return found

    assert allowed(Grouped(1)) == within({7: 1, 2: 1})
    assert allowed(Grouped({7: 2})) == within({7: 2})
    assert allowed(Grouped(dict(zip(GROUPS[:1], [2], strict=True)))) == within({7: 2})
    assert allowed(Grouped({2: 0, 99: 0})) == within({2: 0})


def test_listed_ignores_the_order_of_arms() -> None:
    assert allowed(Listed([(2, 0), ()])) == {(0, 2), ()}


def test_capped_speaks_for_its_inner_actions() -> None:
    assert allowed(Capped(0.0, OneOf())) == allowed(OneOf())
    assert Capped(0.3).fits(0.1 + 0.1 + 0.1)
    assert not Capped(0.3).fits(0.3001)
    with pytest.raises(ValueError, match="OneOf"):
        Capped(1.0, OneOf()).check(0)


EXAMPLES: list[Actions] = [
    AnySubset(),
    AtMost(2),
    Exactly(2),
    OneOf(),
    Grouped(2),
    Grouped({7: 1}),
    Listed([(0,), (1, 2)]),
    Capped(3.0, Capped(5.0, AtMost(1))),
]


@pytest.mark.parametrize("actions", EXAMPLES, ids=str)
def test_actions_are_their_fields(actions: Actions) -> None:
    assert isinstance(actions, Actions)
    actions.check(4, GROUPS)
    values = {f.name: getattr(actions, f.name) for f in dataclasses.fields(actions)}  # type: ignore[arg-type]
    assert type(actions)(**values) == actions
    assert sum(other == actions for other in EXAMPLES) == 1


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: AtMost(-1), "count must be a whole number of at least 0, got -1"),
        (lambda: AtMost(2.5), "count must be .* got 2.5"),  # type: ignore[arg-type]
        (lambda: Exactly("2"), "count must be .* got '2'"),  # type: ignore[arg-type]
        (lambda: Grouped(-2), "limit must be .* got -2"),
        (lambda: Grouped({"a": -1}), r"limit\['a'\] must be .* got -1"),
        (lambda: Listed([]), "list at least one subset"),
        (lambda: Listed([(1, 1)]), r"subsets\[0\] .* repeats an arm"),
        (lambda: Capped(-1.0), "seconds is -1.0"),
    ],
)
def test_wrong_settings_are_named(build: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("actions", "groups", "message"),
    [
        (Exactly(3), None, r"Exactly\(3\) needs a round of at least 3 arms, got 2"),
        (Listed([(0,), (1, 2)]), None, r"subsets\[1\] names arm 2.* 2 arms"),
        (Grouped(1), None, "Grouped needs groups"),
        (
            Grouped(1),
            np.array(["a"]),
            r"groups must hold one label, or a row of labels, for each of 2",
        ),
    ],
)
def test_a_round_that_does_not_fit_is_refused(
    actions: Actions, groups: np.typing.NDArray[np.str_] | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        actions.check(2, groups)
    with pytest.raises(ValueError, match=message):
        Capped(5.0, actions).check(2, groups)
