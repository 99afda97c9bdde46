"""An adapter to networks that score holes. The weights are the user's; none come with coaf."""

from collections.abc import Callable
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.cryoem.images import Pixels

_BATCH = 256  # crops at a time, to bound memory


def load_scorer(path: Path) -> Callable[[Pixels], FloatArray]:
    """A function from crops (n, p, p) to scores (n,): the network in a file of `torch.export`.

    The network sees (n, 1, p, p) of 32-bit floats, and answers (n,) or (n, 1). What
    `torch.export.save` wrote needs none of the code it was made with; for n to be free, export
    with `dynamic_shapes=({0: torch.export.Dim("n")},)`.
    """
    path = Path(path)
    try:
        import torch
    except ImportError:
        raise ImportError(
            "scoring holes by a network needs PyTorch: pip install 'coaf[torch]'"
        ) from None
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path} with the network's weights")
    try:
        network = torch.export.load(str(path)).module()
    except (RuntimeError, BadZipFile) as error:
        first = str(error).strip().splitlines()[0]
        raise ValueError(
            f"{path} holds no exported network ({first}); write one by "
            "torch.export.save(torch.export.export(net.eval(), ...), path)"
        ) from None

    def asked(crops: Pixels) -> FloatArray:
        try:
            with torch.no_grad():
                return np.asarray(network(torch.from_numpy(crops)).numpy(), dtype=np.float64)
        except (RuntimeError, AssertionError) as error:
            first = str(error).strip().splitlines()[0]
            raise ValueError(
                f"the network of {path} does not take {crops.shape} ({first}); export it for "
                "crops of that size, and for any number of them"
            ) from None

    def score(crops: Pixels) -> FloatArray:
        parts = [np.zeros(0)]
        for start in range(0, len(crops), _BATCH):
            some = np.ascontiguousarray(crops[start : start + _BATCH, None], dtype=np.float32)
            answer = asked(some)
            if answer.shape not in ((len(some),), (len(some), 1)):
                raise ValueError(
                    f"the network of {path} answered shape {answer.shape} for {len(some)} crops; "
                    f"it must give one score each"
                )
            parts.append(answer.ravel())
        return np.concatenate(parts)

    return score
