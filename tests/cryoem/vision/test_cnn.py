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
        self.columns = columns
        self.asked: list[tuple[int, ...]] = []

    def __call__(self, crops: Tensor) -> Tensor:
        assert crops.values.dtype == np.float32
        self.asked.append(crops.values.shape)
        return Tensor(np.tile(crops.values.mean(axis=(1, 2, 3))[:, None], (1, self.columns)))


def pretend(monkeypatch: pytest.MonkeyPatch, network: Network | None) -> None:
    """Stand in for PyTorch: a file that starts with PK holds the network."""

    def load(path: str) -> SimpleNamespace:
        if network is None or not Path(path).read_bytes().startswith(b"PK"):
            raise RuntimeError("PytorchStreamReader failed\nmore")
        return SimpleNamespace(module=lambda: network)

    torch = ModuleType("torch")
    torch.export = SimpleNamespace(load=load)  # type: ignore[attr-defined]
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
    with pytest.raises(ValueError, match=r"net\.pt holds no exported network \(Pytorch"):
        load_scorer(tmp_path / "net.pt")
    with pytest.raises(FileNotFoundError, match=r"absent\.pt"):
        load_scorer(tmp_path / "absent.pt")


def test_without_torch_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"coaf\[torch\]"):
        load_scorer(tmp_path / "net.pt")


def test_a_real_network(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    crops = np.random.default_rng(1).random((600, 8, 8)).astype(np.float32)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 1)
    ).eval()
    sample = torch.zeros(4, 1, 8, 8)
    for name, shapes in (("any.pt2", ({0: torch.export.Dim("n")},)), ("four.pt2", None)):
        torch.export.save(
            torch.export.export(net, (sample,), dynamic_shapes=shapes), tmp_path / name
        )
    with torch.no_grad():
        right = net(torch.from_numpy(crops[:, None])).numpy()[:, 0]
    score = load_scorer(tmp_path / "any.pt2")
    np.testing.assert_allclose(score(crops), right, atol=1e-6)
    with pytest.raises(ValueError, match=r"does not take \(2, 1, 9, 9\)"):
        score(np.zeros((2, 9, 9), dtype=np.float32))
    with pytest.raises(ValueError, match=r"does not take \(7, 1, 8, 8\).*any number"):
        load_scorer(tmp_path / "four.pt2")(crops[:7])
    (tmp_path / "weights.pt2").write_text("weights?")
    with pytest.raises(ValueError, match="holds no exported network"):
        load_scorer(tmp_path / "weights.pt2")


def test_a_network_of_pytorch_itself(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="pip install 'coaf[torch]'")
    net = torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(72, 1)
    ).eval()
    crops = np.random.default_rng(0).random((300, 8, 8)).astype(np.float32)
    given = torch.from_numpy(crops[:, None])
    free = ({0: torch.export.Dim("n")},)
    torch.export.save(torch.export.export(net, (given,), dynamic_shapes=free), tmp_path / "net.pt2")
    expected = net(given).detach().numpy()[:, 0]
    score = load_scorer(tmp_path / "net.pt2")
    np.testing.assert_allclose(score(crops), expected, rtol=1e-4, atol=1e-6)
    with pytest.raises(ValueError, match=r"does not take \(3, 1, 9, 9\)"):
        score(np.zeros((3, 9, 9), dtype=np.float32))
    (tmp_path / "else.pt2").write_text("weights?")
    with pytest.raises(ValueError, match="holds no exported network"):
        load_scorer(tmp_path / "else.pt2")
