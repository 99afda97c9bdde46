"""Replicates on a Dask cluster are the same numbers."""

from collections.abc import Iterator

import numpy as np
import pytest

import coaf
from coaf.worlds import Synthetic, cluster, compare
from coaf.worlds.cluster import pool

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A cluster of two processes."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, processes=True
    ) as started:
        yield started.scheduler_address


def test_a_cluster_gives_the_same_numbers(address: str) -> None:
    world = Synthetic(3, seed=1)
    policies = {
        "oracle": coaf.COAF(index=coaf.Truth(world.means), rate=coaf.RobbinsMonro(xi=1.0)),
        "thompson": coaf.COAF.paper(3, index="thompson"),
        "default": coaf.COAF(3),
    }
    here = compare(policies, world, rounds=50, replicates=10, gamma_star=0.3)
    with pool(dask=address) as executor:
        there = compare(
            policies, world, rounds=50, replicates=10, gamma_star=0.3, executor=executor
        )
        # Another experiment on the same cluster is not mixed up with the first.
        other = compare(
            {"default": coaf.COAF(3)},
            Synthetic(3, seed=2),
            rounds=50,
            replicates=2,
            gamma_star=0.3,
            executor=executor,
        )
    for name in here:
        assert np.array_equal(here[name], there[name])
    again = compare(
        {"default": coaf.COAF(3)}, Synthetic(3, seed=2), rounds=50, replicates=2, gamma_star=0.3
    )
    assert np.array_equal(other.paired, again.paired)


def test_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "TIMEOUT", "1s")
    with (
        pytest.raises(ConnectionError, match="no Dask scheduler answers"),
        pool(dask="tcp://127.0.0.1:9"),
    ):
        pass


def test_one_or_the_other() -> None:
    with pytest.raises(ValueError, match="not both"), pool(workers=2, dask="tcp://127.0.0.1:9"):
        pass
