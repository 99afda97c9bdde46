"""A network is asked in batches, answers one score a crop, or says what is wrong."""

import sys
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from coaf.cryoem.vision.cnn import load_scorer


class Tensor:
    """What a scorer needs of a tensor."""

    def __init__(self, values: "np.ndarray[Any, Any]") -> None:
        self.values = values

    def numpy(self) -> "np.ndarray[Any, Any]":
        return self.values


class Network:
    """Answers the mean of each crop, in columns."""

    def __init__(self, columns: int = 1) -> None:
        self.columns, self.training = columns, True
        self.asked: list[tuple[int, ...]] = []

    def eval(self) -> None:
        self.training = False

    def __call__(self, crops: Tensor) -> Tensor:
        assert not self.training
        assert crops.values.dtype == np.float32
        self.asked.append(crops.values.shape)
        return Tensor(np.tile(crops.values.mean(axis=(1, 2, 3))[:, None], (1, self.columns)))


def pretend(monkeypatch: pytest.MonkeyPatch, network: Network | None) -> None:
    """Stand in for PyTorch: a file that starts with PK holds the network."""

    def load(path: str, *, map_location: str) -> Network:
        assert map_location == "cpu"
        if network is None or not Path(path).read_bytes().startswith(b"PK"):
            raise RuntimeError("PytorchStreamReader failed\nmore")
        return network

    torch = ModuleType("torch")
    torch.jit = SimpleNamespace(load=load)  # type: ignore[attr-defined]
    torch.no_grad = nullcontext  # type: ignore[attr-defined]
    torch.from_numpy = Tensor  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)


def test_scores_come_in_order_whatever_the_batches(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    network = Network()
    pretend(monkeypatch, network)
    (tmp_path / "net.pt").write_bytes(b"PK")
    crops = np.random.default_rng(0).random((600, 8, 8)).astype(np.float32)
    score = load_scorer(tmp_path / "net.pt")
    np.testing.assert_allclose(score(crops), crops.mean(axis=(1, 2)), rtol=1e-5)
    assert [shape[0] for shape in network.asked] == [256, 256, 88]
    assert score(crops[:0]).shape == (0,)


def test_a_network_of_two_classes_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pretend(monkeypatch, Network(columns=2))
    (tmp_path / "net.pt").write_bytes(b"PK")
    with pytest.raises(ValueError, match=r"answered shape \(3, 2\) for 3 crops"):
        load_scorer(tmp_path / "net.pt")(np.zeros((3, 8, 8), dtype=np.float32))


def test_a_file_that_is_no_network_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pretend(monkeypatch, None)
    (tmp_path / "net.pt").write_text("weights?")
    with pytest.raises(ValueError, match=r"net\.pt is no TorchScript file \(Pytorch"):
        load_scorer(tmp_path / "net.pt")
    with pytest.raises(FileNotFoundError, match=r"absent\.pt"):
        load_scorer(tmp_path / "absent.pt")


def test_without_torch_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"coaf\[torch\]"):
        load_scorer(tmp_path / "net.pt")


def test_a_real_network(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 1))
    torch.jit.script(net).save(str(tmp_path / "net.pt"))
    assert load_scorer(tmp_path / "net.pt")(np.ones((5, 8, 8), dtype=np.float32)).shape == (5,)
