"""Import torchvision, also where its compiled operators do not load.

A CUDA build of torchvision beside a CPU build of torch fails at import with "operator
torchvision::nms does not exist", because the library that registers the operator cannot be
loaded. Declaring the two schemas torchvision looks up at import is enough for everything the
book uses (data sets, models, transforms); the operators themselves stay unavailable. JPEG files
are read through Pillow, never through `torchvision.io`.
"""

import importlib
from types import ModuleType

import torch

_SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_keep_alive: list[torch.library.Library] = []


def torchvision() -> ModuleType:
    """The torchvision module; the stand-in schemas are declared only if the plain import fails."""
    try:
        return importlib.import_module("torchvision")
    except RuntimeError as error:
        if "torchvision::nms" not in str(error):
            raise
    library = torch.library.Library("torchvision", "DEF")  # noqa: TOR901 - kept alive below
    for name in ("nms", "qnms"):
        library.define(f"{name}{_SCHEMA}")
    _keep_alive.append(library)
    return importlib.import_module("torchvision")
