"""Gaussian rewards of arms near each other: moments and evidence are those of a dense field."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coaf.bandit.arrays import FloatArray, IntArray
from coaf.bandit.beliefs.nested.nested import Nested
from coaf.bandit.checks.beliefs import check_belief

EFFECTS, NEAR, NOISE, SCALE = (0.8, 1.2), 0.9, 0.7, 2.5
STATED: dict[str, Any] = {"family": "gaussian", "effects": EFFECTS, "near": NEAR, "noise": NOISE}


def rows(rng: np.random.Generator, n: int) -> tuple[FloatArray, FloatArray, IntArray]:
    """Two places and a feature, rewards, and (square, patch); some places are shared."""
    X = np.column_stack([rng.integers(0, 4, size=(n, 2)) / 1.5, rng.normal(size=n)])
    return X, 3.0 + rng.normal(size=n), rng.integers(0, 2, size=(n, 2))


def covariance(A: tuple[FloatArray, IntArray], B: tuple[FloatArray, IntArray]) -> FloatArray:
    """Of η a priori, between two sets of arms."""
    (X, g), (Y, h) = A, B
    square = g[:, None, 0] == h[:, 0]
    patch = square & (g[:, None, 1] == h[:, 1])
    apart = np.hypot(X[:, None, 0] - Y[:, 0], X[:, None, 1] - Y[:, 1])
    found = SCALE**2 * (np.outer(X[:, 2], Y[:, 2]) + 1.0)
    found = found + EFFECTS[0] ** 2 * square + patch * (EFFECTS[1] ** 2 + NEAR**2 * np.exp(-apart))
    return np.asarray(found)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.floats(0.2, 1.0))
def test_moments_are_those_of_a_dense_gaussian_process(seed: int, n: int, factor: float) -> None:
    """Exactly, with old rows counting less, and the last rows coming one by one."""
    rng = np.random.default_rng(seed)
    X, y, groups = rows(rng, n)
    belief = Nested(3, scale=SCALE, variances="fixed", **STATED)
    half = n // 2
    belief.learn(X[:half], y[:half], groups[:half])
    belief.forget(factor)
    for i in range(half, n):
        belief.learn(X[i : i + 1], y[i : i + 1], groups[i : i + 1])
    noise = NOISE**2 / np.where(np.arange(n) < half, factor, 1.0)
    M = np.linalg.inv(covariance((X, groups), (X, groups)) + np.diag(noise))
    arms, _, labels = rows(rng, 8)
    cross = covariance((arms, labels), (X, groups))
    mean, cov = belief.moments(arms, labels)
    np.testing.assert_allclose(mean, cross @ M @ y, atol=1e-7)
    prior = covariance((arms, labels), (arms, labels))
    np.testing.assert_allclose(cov, prior - cross @ M @ cross.T, atol=1e-7)
    told = belief.factors(arms, labels)
    np.testing.assert_allclose((told.shared**2).sum(axis=1) + told.own, np.diag(cov), atol=1e-9)


def test_evidence_is_that_of_a_dense_gaussian_process() -> None:
    rng = np.random.default_rng(3)
    X, y, groups = rows(rng, 30)
    belief = Nested(3, scale=SCALE, variances="fixed", **STATED)
    belief.learn(X, y, groups)
    K = covariance((X, groups), (X, groups)) + NOISE**2 * np.eye(30)
    logdet = np.linalg.slogdet(2.0 * np.pi * K)[1]
    assert belief.evidence == pytest.approx(-0.5 * (logdet + y @ np.linalg.solve(K, y)), abs=1e-8)


def test_rows_without_groups_are_near_nobody() -> None:
    """They only have more noise, that of all effects of their own."""
    rng = np.random.default_rng(4)
    X, y, groups = rows(rng, 20)
    belief = Nested(3, scale=SCALE, variances="fixed", **STATED)
    belief.learn(X[:12], y[:12], groups[:12])
    belief.learn(X[12:], y[12:])
    alone = np.arange(20) >= 12
    K = covariance((X, groups), (X, groups))
    K[alone] = K[:, alone] = 0.0
    bare = SCALE**2 * (np.outer(X[:, 2], X[:, 2]) + 1.0)
    K = np.where(alone[:, None] | alone, bare, K)
    noise = NOISE**2 + alone * (EFFECTS[0] ** 2 + EFFECTS[1] ** 2 + NEAR**2)
    K += np.diag(noise)
    arms, _, labels = rows(rng, 5)
    cross = covariance((arms, labels), (X, groups))
    cross[:, alone] = SCALE**2 * (np.outer(arms[:, 2], X[alone, 2]) + 1.0)
    np.testing.assert_allclose(belief.moments(arms, labels)[0], cross @ np.linalg.solve(K, y))
    whole = np.linalg.slogdet(2.0 * np.pi * K)[1] + y @ np.linalg.solve(K, y)
    assert belief.evidence == pytest.approx(-0.5 * whole, abs=1e-8)


def test_shots_of_one_hole_speak_less_for_its_patch_than_those_of_many() -> None:
    """Seven bad shots of one hole may be that hole's fault; of seven holes they are the patch's."""
    labels, one = np.zeros((7, 2), dtype=np.int64), np.zeros((7, 3))
    many = np.column_stack([4.0 * np.arange(7), np.zeros(7), np.zeros(7)])
    told = []
    for spots in (one, many):
        belief = Nested(3, scale=SCALE, variances="fixed", **STATED)
        belief.learn(many, np.full(7, 3.0), labels + 1)
        belief.learn(spots, np.zeros(7), labels)
        told.append(float(belief.mean([[-40.0, 0.0, 0.0]], labels[:1])[0]))
    assert told[1] < told[0] - 0.1


def field(rng: np.random.Generator, size: float = 1.0) -> tuple[FloatArray, FloatArray, IntArray]:
    """12 patches of 4 x 4 holes with three shots each, much alike within a hole."""
    spots = np.array([[i, j] for i in range(4) for j in range(4)]) / 1.5
    apart = np.hypot(*(spots[:, None] - spots).transpose(2, 0, 1))
    root = np.linalg.cholesky(np.exp(-apart) + 1e-9 * np.eye(16))
    X = np.tile(np.column_stack([np.repeat(spots, 3, axis=0), np.zeros(48)]), (12, 1))
    X[:, 2] = rng.normal(size=len(X))
    patches = [5.0 + 0.5 * rng.normal() + 1.5 * (root @ rng.normal(size=16)) for _ in range(12)]
    eta = np.concatenate([np.repeat(one, 3) for one in patches]) + 0.5 * X[:, 2]
    y = size * (eta + 0.4 * rng.normal(size=len(X)))
    return X, y, np.repeat([[k // 4, k] for k in range(12)], 48, axis=0)


@pytest.mark.parametrize("size", [1.0, 1e4])
def test_likeness_and_noise_are_found_in_rewards_of_any_unit(size: float) -> None:
    """A field of 1.5 and a noise of 0.4, within a third; the same whatever the unit."""
    X, y, groups = field(np.random.default_rng(0), size)
    belief = Nested(3, family="gaussian", near=True)
    for k in range(0, len(y), 48):
        belief.learn(X[k : k + 48], y[k : k + 48], groups[k : k + 48])
    *_, near, noise = belief.deviations / size
    assert 1.0 < near < 2.0
    assert 0.3 < noise < 0.55
    far = X[:10] + np.array([90.0, 0.0, 0.0])
    told = belief.mean(far, groups[:10]) / size
    X, y, groups = field(np.random.default_rng(0))
    same = Nested(3, family="gaussian", near=True)
    for k in range(0, len(y), 48):
        same.learn(X[k : k + 48], y[k : k + 48], groups[k : k + 48])
    np.testing.assert_allclose(told, same.mean(far, groups[:10]), rtol=1e-9)


def test_a_restored_belief_goes_on_to_the_bit() -> None:
    X, y, groups = field(np.random.default_rng(1))
    belief = Nested(3, family="gaussian", near=True)
    for i in range(0, 90, 6):
        belief.learn(X[i : i + 6], y[i : i + 6], groups[i : i + 6])
    again = Nested.restore(json.loads(json.dumps(belief.state())))
    for one in (belief, again):
        for i in range(90, 110):
            one.learn(X[i : i + 1], y[i : i + 1], groups[i : i + 1])
    np.testing.assert_array_equal(belief.mean(X, groups), again.mean(X, groups))


def test_a_settled_session_keeps_what_it_says_of_groups() -> None:
    X, y, groups = field(np.random.default_rng(1))
    belief = Nested(3, scale=SCALE, variances="fixed", **STATED)
    belief.learn(X, y, groups)
    far = X[:20] + np.array([90.0, 0.0, 0.0])
    before = belief.mean(far, groups[:20])
    belief.settle()
    np.testing.assert_allclose(belief.mean(far, groups[:20]), before, atol=1e-9)


@pytest.mark.parametrize("given", [{"near": True}, {**STATED, "scale": SCALE}])
def test_contract(given: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    X, y, groups = rows(rng, 14)
    belief = Nested(3, **{"family": "gaussian", **given})
    check_belief(belief, features=X, rewards=y, groups=groups)
