"""Replicates on a Dask cluster are the same numbers."""

import re
import signal
import threading
from collections.abc import Iterator

import numpy as np
import pytest

import coaf
from coaf.worlds import Synthetic, cluster, compare
from coaf.worlds.cluster import _interrupts_held, pool

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A cluster of two processes."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", processes=True
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


@pytest.mark.parametrize("address", ["x", "", "tcp://x", "x:y", "http://x:8786", "x:8786/status"])
def test_an_address_is_read_before_anybody_is_called(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(distributed, "Client")
    with pytest.raises(ValueError, match="give host:port"), pool(dask=address):
        pass


@pytest.mark.parametrize("address", ["x:1", "tcp://x:1", "tls://10.0.0.1:8786", "wss://[::1]:80"])
def test_addresses_that_may_be_called(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def call(called: str, **_settings: object) -> None:
        raise OSError(called)

    monkeypatch.setattr(distributed, "Client", call)
    with pytest.raises(ConnectionError, match=re.escape(address)), pool(dask=address):
        pass


def test_one_or_the_other() -> None:
    with pytest.raises(ValueError, match="not both"), pool(workers=2, dask="tcp://127.0.0.1:9"):
        pass


def test_ctrl_c_waits_while_processes_are_started_whoever_hears_of_it() -> None:
    begun, sent, reached = threading.Event(), threading.Event(), list[str]()

    def hear() -> None:
        begun.wait()
        signal.raise_signal(signal.SIGINT)
        sent.set()

    other = threading.Thread(target=hear)
    other.start()

    def start() -> None:
        with _interrupts_held():
            begun.set()
            sent.wait()
            reached.append("the end")

    with pytest.raises(KeyboardInterrupt):
        start()
    other.join()
    assert reached == ["the end"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
