"""Rewards: what a score is worth, and that nothing becomes 0 unsaid."""

from math import inf, nan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coaf.cryoem.checks.reward import check_reward
from coaf.cryoem.microscope import Score
from coaf.cryoem.reward import Combined, GoodBelow, Graded, Particles, Reward, parse_reward


def score(ctf: float | None = 3.2, particles: float | None = None) -> Score:
    return Score("h7", 1, ctf=ctf, particles=particles, exposed_at=0.0, arrived_at=45.0)


def test_good_is_below_the_cut_not_at_it() -> None:
    assert [GoodBelow(3.8)(score(ctf)) for ctf in (3.79, 3.8, 3.81)] == [1.0, 0.0, 0.0]


def test_graded_is_a_line_that_ends() -> None:
    reward = Graded(best=3.0, worst=7.0)
    assert [reward(score(ctf)) for ctf in (2.0, 3.0, 4.0, 7.0, 50.0)] == [1.0, 1.0, 0.75, 0.0, 0.0]


@pytest.mark.parametrize("ctf", [None, nan, inf, 100_000.0, 250_000.0])
@pytest.mark.parametrize("kind", [GoodBelow, Graded])
def test_a_fit_that_failed_is_what_was_stated(ctf: float | None, kind: type) -> None:
    assert kind(failed="bad")(score(ctf)) == 0.0
    assert kind(failed="missing")(score(ctf)) is None


@pytest.mark.parametrize("ctf", [0.0, -3.2, -inf])
@pytest.mark.parametrize("reward", [GoodBelow(), Graded(failed="missing")])
def test_a_resolution_that_cannot_be_is_an_error_that_names_the_hole(
    ctf: float, reward: Reward
) -> None:
    with pytest.raises(ValueError, match=r"hole 'h7', shot 1, is .* Å; a resolution is above 0"):
        reward(score(ctf))


def test_particles_are_scaled_and_missing_ones_are_missing() -> None:
    assert Particles(scale=50)(score(particles=25)) == 0.5
    assert Particles()(score(particles=None)) is None
    assert Particles()(score(particles=nan)) is None
    assert Particles(failed="bad")(score(particles=None)) == 0.0
    for count in (-1.0, inf):
        with pytest.raises(ValueError, match="give a count of at least 0"):
            Particles()(score(particles=count))


def test_a_combination_misses_what_a_part_misses() -> None:
    both = (GoodBelow(3.8), Particles(100))
    assert Combined(both)(score(3.2, 50)) == 0.5
    assert Combined(both)(score(4.2, 50)) == 0.0
    assert Combined(both, (2.0, 4.0))(score(3.2, 50)) == 4.0
    # 0 times unknown is 0 only if the unknown is finite, and a picker may yet say.
    assert Combined(both)(score(4.2, None)) is None
    assert Combined(both, (2.0, 4.0))(score(None, 50)) == 2.0


def test_the_belief_that_suits() -> None:
    binary = GoodBelow()
    assert binary.family == Combined((binary, GoodBelow(5.0))).family == "logistic"
    for other in (Graded(), Particles(), Combined((binary,), (1.0,)), Combined((binary, Graded()))):
        assert other.family == "gaussian"


@pytest.mark.parametrize(
    ("text", "reward"),
    [
        ("ctf<3.8", GoodBelow(3.8)),
        (" ctf < 6 ", GoodBelow(6.0)),
        ("ctf 3..8", Graded(3.0, 8.0)),
        ("ctf3.5..6", Graded(3.5, 6.0)),
        ("particles", Particles(100.0)),
        ("particles / 250", Particles(250.0)),
        ("ctf<4*particles/100", Combined((GoodBelow(4.0), Particles(100.0)))),
        (
            "0.3 * ctf<4 + 0.7 * ctf 3..8 * particles/10",
            Combined(
                (GoodBelow(4.0), Combined((Graded(3.0, 8.0), Particles(10.0)))), weights=(0.3, 0.7)
            ),
        ),
        ("ctf<4 + particles", Combined((GoodBelow(4.0), Particles()), weights=(1.0, 1.0))),
    ],
)
def test_what_a_person_writes(text: str, reward: Reward) -> None:
    assert parse_reward(text) == reward
    assert parse_reward(str(reward)) == reward


_simple = st.one_of(
    st.integers(1, 99).map(lambda i: GoodBelow(i / 10.0)),
    st.integers(1, 99).map(lambda i: Graded(i / 10.0, i / 5.0)),
    st.integers(1, 99).map(lambda i: Particles(float(i))),
)
_product = st.lists(_simple, min_size=1, max_size=3).map(
    lambda parts: parts[0] if len(parts) == 1 else Combined(tuple(parts))
)
_weighted = st.lists(
    st.tuples(st.integers(1, 9).map(lambda i: i / 4.0), _product), min_size=1, max_size=3
).map(lambda terms: Combined(tuple(r for _, r in terms), tuple(w for w, _ in terms)))


@settings(deadline=None)
@given(st.one_of(_product, _weighted))
def test_what_is_printed_is_read_again(reward: Reward) -> None:
    assert parse_reward(str(reward)) == reward
    check_reward(reward)


_any = st.floats(1e-3, 1e3)


@given(_any, _any, st.floats(-9.0, 9.0))
def test_every_digit_is_printed(cut: float, more: float, weight: float) -> None:
    for reward in (GoodBelow(cut), Graded(cut, 2.0 * cut + more), Particles(more)):
        assert parse_reward(str(reward)) == reward
    both = Combined((GoodBelow(cut), Particles(more)), (weight, 1.0))
    assert parse_reward(str(both)) == both


def test_a_sum_in_a_product_is_not_taken_for_another() -> None:
    nested = Combined((Combined((GoodBelow(), Graded()), (0.5, 0.5)), Particles()))
    assert str(nested) == "(0.5 * ctf<3.8 + 0.5 * ctf 3..8) * particles/100"
    with pytest.raises(ValueError, match="cannot read the reward"):
        parse_reward(str(nested))
    check_reward(nested)


def test_what_failed_means_is_handed_on() -> None:
    assert parse_reward("ctf<3.8", failed="missing") == GoodBelow(3.8, failed="missing")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ctf>3.8", "cannot read the reward 'ctf>3.8': write"),
        ("", "cannot read the reward '': write"),
        ("ctf<4 + ", "cannot read the reward .* at '': write"),
        ("ctf<4 * beauty", "at 'beauty': write"),
        ("ctf<0", "in the reward 'ctf<0': cut is 0.0; it must be greater than 0"),
        ("ctf 8..3", "worst must be larger"),
        ("2 * 3", "at '3': write"),
    ],
)
def test_what_cannot_be_read_is_said(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_reward(text)


def test_settings_that_make_no_sense() -> None:
    with pytest.raises(ValueError, match='must be "bad" or "missing"'):
        GoodBelow(failed="zero")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="1 weights for 2 parts"):
        Combined((GoodBelow(), Graded()), weights=(1.0,))
    with pytest.raises(ValueError, match="at least one part"):
        Combined(())
