"""What people expect of any library: files, reprs, arms by number, errors that say what to give."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import coaf

FEATURES = [[0.2, 0.9], [0.5, 0.1], [0.7, 0.7]]
ROUND = coaf.Round(FEATURES, coaf.Additive(5.0, 1.0))


def learned(policy: Any) -> Any:
    decision = policy.decide(ROUND)
    policy.commit(decision)
    policy.learn(decision, decision.arms, np.arange(len(decision.arms)) + 0.5)
    return policy


@pytest.mark.parametrize(
    "policy",
    [
        coaf.COAF(2),
        coaf.COAF.paper(2),
        coaf.Threshold(0.3),
        coaf.TakeAll(),
        coaf.Explore(coaf.COAF(2), 0.1),
        coaf.Stepwise(coaf.Nested(2, family="gaussian")),
    ],
    ids=repr,
)
def test_a_policy_is_saved_and_loaded(policy: Any, tmp_path: Path) -> None:
    learned(policy)
    policy.save(tmp_path / "policy.json")
    again = coaf.load(tmp_path / "policy.json")
    assert type(again) is type(policy)
    assert json.dumps(again.state()) == json.dumps(policy.state())
    assert repr(again) == repr(policy)


def test_a_file_is_whole_or_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "policy.json"
    coaf.TakeAll().save(path)
    before = path.read_text()

    def fails(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match="no space"):
        learned(coaf.COAF(2)).save(path)
    assert path.read_text() == before
    assert [p.name for p in tmp_path.iterdir()] == ["policy.json"]


def test_files_keep_their_links_and_permissions(tmp_path: Path) -> None:
    held, link = tmp_path / "held.json", tmp_path / "link.json"
    before = os.umask(0o027)
    try:
        coaf.TakeAll().save(held)
        assert held.stat().st_mode & 0o777 == 0o640, "those of any new file"
        held.chmod(0o604)
        link.symlink_to(held)
        learned(coaf.TakeAll()).save(link)
    finally:
        os.umask(before)
    assert link.is_symlink()
    assert held.stat().st_mode & 0o777 == 0o604
    assert coaf.load(held).commits == 1


def test_a_file_that_is_no_policy_is_named(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    path.write_text('{"coaf": "linear", "version": 3}')
    with pytest.raises(ValueError, match=r"policy\.json: state names an unknown policy 'linear'"):
        coaf.load(path)
    path.write_text('{"coaf": "coaf", "ver')
    with pytest.raises(ValueError, match=r"policy\.json: state is not complete JSON"):
        coaf.load(path)


def test_reprs_say_what_it_is_made_of() -> None:
    assert repr(coaf.COAF(2)) == "<COAF: ScaleFree(2), Upper, Restarting, 0 commits>"
    assert repr(learned(coaf.Threshold(0.3))) == (
        "<Threshold: cut 0.3, ScaleFree(2), Upper, 1 commits>"
    )
    assert repr(coaf.TakeAll()) == "<TakeAll: 0 commits>"
    assert repr(coaf.Explore(coaf.TakeAll(), 0.05)) == "<Explore: 0.05 of <TakeAll: 0 commits>>"


@pytest.mark.parametrize(
    ("thing", "said"),
    [
        (coaf.ScaleFree(3), "ScaleFree(3)"),
        (coaf.Linear(3, noise=0.5), "Linear(3, noise=0.5, mean_bound=1)"),
        (coaf.Drift(coaf.ScaleFree(3), half_life=50), "Drift(ScaleFree(3), half_life=50)"),
        (coaf.Thompson(), "Thompson()"),
        (coaf.Fixed(0.2), "Fixed(0.2)"),
        (coaf.RobbinsMonro(xi=1.0, n_max=9), "RobbinsMonro(xi=1, n_max=9)"),
        (coaf.worlds.Synthetic(3, arms=(2, 4), seed=1), "Synthetic(dim=3, arms=(2, 4), seed=1)"),
    ],
    ids=str,
)
def test_what_a_policy_is_made_of_says_what_it_is(thing: Any, said: str) -> None:
    assert repr(thing) == said


def test_a_decision_says_what_and_why() -> None:
    said = "8 s. Take 3 of 3: all that is allowed.>"
    decision = coaf.TakeAll().decide(ROUND)
    assert repr(decision) == f"<Decision 0: arms [0, 1, 2], {said}"
    named = coaf.Round(FEATURES, coaf.Additive(5.0, 1.0), names=["a", "b", "c"], key="lunch")
    decision = coaf.TakeAll().decide(named)
    assert repr(decision) == f"<Decision 'lunch': arms ['a', 'b', 'c'], {said}"
    many = coaf.TakeAll().decide(coaf.Round(np.zeros((20, 2)), coaf.Additive(5.0, 1.0)))
    assert repr(many).startswith("<Decision 0: arms [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...], 25 s.")


def test_a_round_says_in_a_line_what_it_is() -> None:
    kind = "features (3, 2), Additive latency, AnySubset actions, at least 5 s"
    assert repr(ROUND) == f"<Round: {kind}>"
    rest = coaf.Round(FEATURES, coaf.Additive(5.0, 1.0), key="rest", follows="lunch")
    assert repr(rest) == f"<Round 'rest': {kind}, follows 'lunch'>"


def test_a_place_where_nothing_can_be_saved_is_named(tmp_path: Path) -> None:
    policy = coaf.TakeAll()
    with pytest.raises(FileNotFoundError, match=r"p\.json cannot be written: there is no folder"):
        policy.save(tmp_path / "none" / "p.json")
    for verb in (policy.save, coaf.load):
        with pytest.raises(IsADirectoryError, match="is a folder: give the name of a file in it"):
            verb(tmp_path)


def test_arms_by_number() -> None:
    policy = coaf.COAF(2)
    decision = policy.decide(ROUND)
    assert decision.arms.tolist() == [0, 1, 2]
    policy.commit(decision, executed=[2, 0])
    with pytest.raises(ValueError, match=r"arms\[0\] is 1, which was not executed"):
        policy.learn(decision, [1], [0.5])
    policy.learn(decision, np.array([False, False, True]), [0.1])
    policy.learn(decision, [0], [0.5])
    assert not policy.pending()


@pytest.mark.parametrize(
    ("executed", "message"),
    [
        ([0, 3], r"executed\[1\] is 3; the round has arms 0 to 2"),
        ([-1], r"executed\[0\] is -1"),
        ([1, 0, 1], "names an arm twice; if it is a mask, give booleans"),
        ([0.5], "mask over 3 arms or their numbers"),
        ([True], "mask over 3 arms or their numbers"),
    ],
)
def test_arms_that_are_none(executed: Any, message: str) -> None:
    policy = coaf.COAF(2)
    with pytest.raises(ValueError, match=message):
        policy.commit(policy.decide(ROUND), executed=executed)


def test_nothing_executed() -> None:
    policy = coaf.COAF(2)
    policy.commit(policy.decide(ROUND), executed=[])
    assert policy.pending() == []


@pytest.mark.parametrize("given", [FEATURES, np.array(FEATURES), None, "round"])
def test_what_is_no_round(given: Any) -> None:
    with pytest.raises(TypeError, match=r"decide takes a Round, as Round\(features"):
        coaf.COAF(2).decide(given)


@pytest.mark.parametrize(
    "policy", [coaf.COAF(2), coaf.Threshold(0.3), coaf.TakeAll(), coaf.Explore(coaf.COAF(2), 0.1)]
)
def test_what_is_wanted_is_named(policy: Any) -> None:
    with pytest.raises(TypeError, match=r"round is a list; decide takes a Round, as Round\("):
        policy.decide([[1, 2]])
    for given, name in (([0], "a list"), (None, "None"), ("x", "a str"), (ROUND, "a Round")):
        wanted = rf"decision is {name}; give what decide returned"
        for verb in (
            policy.commit,
            policy.abandon,
            lambda d: policy.learn(d, [0], [1.0]),
            lambda d: policy.correct(d, [0], [1.0]),
        ):
            with pytest.raises(TypeError, match=wanted):
                verb(given)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda a: coaf.COAF(a([[1, 2]])), r"dim is \[\[1, 2\]\]; it must be a positive integer"),
        (lambda a: coaf.COAF(dim=a("3")), "dim is '3'; it must be a positive integer: the number"),
        (lambda a: coaf.Threshold(0.3, dim=a("3")), "dim is '3'; it must be a positive integer"),
        (lambda a: coaf.Regression(a(None), None), "dim is None; it must be a positive integer"),
        (
            lambda a: coaf.COAF(belief=a(3)),
            "belief is an int, which lacks dim, mean, learn; it must be a belief, as Linear",
        ),
        (lambda a: coaf.COAF(2, belief=a(coaf.Linear)), "belief is the class Linear; it must be"),
        (
            lambda a: coaf.Explore(a("p"), 0.1),
            "policy is a str, which lacks decide, commit, learn; it must be a policy, as COAF",
        ),
    ],
)
def test_what_a_policy_is_made_of_is_named(make: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        make(lambda given: given)


def test_sparse_features_are_refused_with_what_works() -> None:
    with pytest.raises(ValueError, match=r"sparse matrix.*features\.toarray\(\)"):
        coaf.Round(sparse.csr_matrix(FEATURES), coaf.Additive(5.0, 1.0))


def test_what_compare_needs_is_asked_for_before_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    world = coaf.worlds.Synthetic(dim=2)
    monkeypatch.setattr(sys.modules["coaf.bandit.extras"], "find_spec", lambda _: None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'coaf\[experiments\]'"):
        coaf.compare({"all": coaf.TakeAll()}, world, rounds=10**9)


def test_baselines_do_not_speak_of_a_price_of_time() -> None:
    cut = coaf.Threshold(0.5, index=coaf.Truth(lambda features: features[:, 0]))
    assert cut.decide(ROUND).why == (
        "Take 1 of 3: those whose estimate is above the cut of 0.5; the best arm left is "
        "estimated at 0.5."
    )
    assert coaf.TakeAll().decide(ROUND).why == "Take 3 of 3: all that is allowed."


def test_arms_have_names() -> None:
    patch = coaf.Round(FEATURES, coaf.Additive(5.0, 1.0), names=["a", "b", "c"])
    policy, plain = coaf.COAF(2), coaf.COAF(2)
    decision = policy.decide(patch)
    assert decision.names == ("a", "b", "c")
    policy.commit(decision, executed=["c", "a"])
    policy.learn(decision, ["a"], [1.0])
    with pytest.raises(ValueError, match=r"arms\[1\] is 'd', which names no arm of this round"):
        policy.learn(decision, ["c", "d"], [1.0, 0.0])
    assert policy.pending()[0]["arms"] == ["c"]
    for again in (policy, coaf.COAF.restore(policy.state())):
        assert again.pending() == policy.pending()
        with pytest.raises(ValueError, match=r"arms\[0\] is 'b', which was not executed"):
            again.learn(decision, ["b"], [1.0])
        with pytest.raises(ValueError, match=r"arms\[0\] is 'a', whose reward is in already"):
            again.learn(decision, ["a"], [1.0])
        with pytest.raises(ValueError, match="'a', of which no reward is to come"):
            again.abandon(decision, ["a"])
    policy.abandon(decision, ["c"])
    same = plain.decide(ROUND)
    assert same.names == ()
    plain.commit(same, executed=[0, 2])
    plain.learn(same, [0], [1.0])
    plain.abandon(same)
    assert policy.state() == plain.state()


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a", "b"], "names are 2 different ones for 3 arms"),
        (["a", "a", "b"], "names are 2 different ones for 3 arms"),
        (["a", 7, 8], r"names\[1\] is 7; names are strings.*give names=map\(str, names\)"),
        ("abc", "names is the string 'abc'; give one for each arm"),
    ],
)
def test_names_that_are_none_are_refused(names: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        coaf.Round(FEATURES, coaf.Additive(5.0, 1.0), names=names)


def test_a_column_that_is_not_numbers_is_named() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"length": [1.5, 2.0], "genre": ["drama", "crime"]})
    taken = coaf.Round(frame[["length"]], coaf.Additive(5.0, 1.0))
    assert taken.features.tolist() == [[1.5], [2.0]]
    with pytest.raises(ValueError, match="column 'genre' that is not numbers"):
        coaf.Round(frame, coaf.Additive(5.0, 1.0))


def test_dates_and_complex_numbers_are_no_features() -> None:
    """NumPy makes numbers of dates that depend on their unit, and forgets an imaginary part."""
    pandas = pytest.importorskip("pandas")
    dates = pandas.to_datetime(["2026-01-01", "2026-02-01"])
    for frame in (
        pandas.DataFrame({"seen": dates}),
        pandas.DataFrame({"length": [1.5, 2.0], "seen": dates}),
        pandas.DataFrame({"seen": dates - dates[0]}),
    ):
        with pytest.raises(
            ValueError, match=r"column 'seen' that is not numbers \(got (dates|times)"
        ):
            coaf.Round(frame, coaf.Additive(5.0, 1.0))
    wrong: list[tuple[Any, str]] = [
        (dates.to_numpy()[:, None], "dates"),
        ([[1j], [2.0]], "complex numbers"),
    ]
    for given, what in wrong:
        with pytest.raises(ValueError, match=f"features must be an array of numbers: got {what}"):
            coaf.Round(given, coaf.Additive(5.0, 1.0))


@pytest.mark.parametrize("dtype", ["Float64", "Int64", "float64", "object"])
def test_a_place_in_a_data_frame_with_nothing_in_it_is_named(dtype: str) -> None:
    pandas = pytest.importorskip("pandas")
    nothing = float("nan") if dtype == "float64" else pandas.NA
    seen = pandas.Series([1, 2, nothing], dtype=dtype)
    frame = pandas.DataFrame({"length": [1.5, 2.0, 2.5], "seen": seen})
    with pytest.raises(ValueError, match=r"nothing in column 'seen', row 2 \(from 0\): fill it"):
        coaf.Round(frame, coaf.Additive(5.0, 1.0))


def test_a_key_is_enough_after_a_restart(tmp_path: Path) -> None:
    """Decided again the round is decided otherwise; what was executed counts."""
    patch = coaf.Round(FEATURES, coaf.Additive(5.0, 1.0), key="first")
    policy = coaf.COAF(belief=coaf.Linear(2), rate=coaf.Fixed(0.0))
    policy.commit(policy.decide(patch))
    policy.save(tmp_path / "policy.json")
    again = coaf.load(tmp_path / "policy.json")
    assert isinstance(again, coaf.COAF)
    again.pricing = coaf.Fixed(100.0)  # now nothing is worth its time
    decision = again.decide(patch)
    assert not decision.chosen.any()
    again.learn(decision, [0, 1, 2], [1.0, 0.0, 1.0])
    assert again.pending() == []


def test_the_report_by_hand() -> None:
    """Two rounds of three arms, all taken: 16 s in all, and three of six rewards are in."""
    policy = coaf.COAF(belief=coaf.Linear(2, noise=0.1), rate=coaf.Fixed(0.0))
    assert "0 rounds" in str(policy.report())
    first = policy.decide(ROUND)
    policy.commit(first)
    second = policy.decide(ROUND)
    policy.commit(second)
    policy.learn(first, [0, 1, 2], [0.3, 0.2, 0.1])
    report = policy.report()
    assert (report.rounds, report.seconds, report.rewards) == (2, 16.0, 3)
    assert report.earned == pytest.approx(0.6)
    assert report.realised == pytest.approx(0.6 / 16.0)
    assert (report.pending, report.missing, report.given_up) == (1, 3, 0)
    assert report.price == 0.0
    assert policy.belief is not None
    means = np.clip(policy.belief.mean(ROUND.features), 0.0, None)
    found = report.price_by_means
    assert found is not None
    taken = means > found
    assert found == pytest.approx(means[taken].sum() / (5.0 + taken.sum()), rel=1e-9)
    assert [b.came for b in report.calibration] == [
        pytest.approx(r) for r in np.array([0.3, 0.2, 0.1])[np.argsort(first.estimates)]
    ]
    assert (report.at_bound, report.of) == (int(2 * (first.estimates >= 1.0).sum()), 6)
    policy.correct(first, [0], [0.4], previous=[0.3])
    policy.abandon(second)
    report = policy.report()
    assert report.realised == pytest.approx(0.7 / 16.0)
    assert (report.pending, report.missing, report.given_up) == (0, 0, 3)
    again = coaf.COAF.restore(policy.state()).report()
    assert (again.realised, again.rounds, again.calibration) == (report.realised, 2, ())


def test_the_report_tells_an_optimistic_price_from_what_is_earned() -> None:
    """Arms bring 0.05 on average; the paper's radius, at the first rounds, hopes for 1 each."""
    rng = np.random.default_rng(0)
    policy = coaf.COAF.paper(2)
    for _ in range(20):
        X = rng.normal(size=(5, 2))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        decision = policy.decide(coaf.Round(X, coaf.Additive(1.0, 0.1)))
        policy.commit(decision)
        policy.learn(decision, decision.arms, rng.normal(0.05, 0.1, len(decision.arms)))
    report = policy.report()
    assert report.price is not None
    assert report.price_by_means is not None
    assert report.price > 5.0 * max(report.realised, report.price_by_means)
    assert report.at_bound > 0
    assert "deciding price" in str(report)
    assert "price by means" in str(report)


def test_a_baseline_reports_no_price() -> None:
    report = learned(coaf.TakeAll()).report()
    assert report.price is None
    assert report.realised == pytest.approx(4.5 / 8.0)
    assert "price" not in str(report)
    assert report.calibration == (), "it estimates nothing"
