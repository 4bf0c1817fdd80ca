"""Readers of the formats in which the data sets are published: idx files and PNG batches."""

import gzip
import io
import json
import math

import numpy as np
from PIL import Image


def read_idx(data: bytes) -> np.ndarray:
    """The array in an idx file of unsigned bytes, gzipped or not (LeCun's format of MNIST)."""
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    if len(data) < 4 or data[:3] != b"\x00\x00\x08":
        raise ValueError("not an idx file of unsigned bytes")
    start = 4 + 4 * data[3]
    shape = tuple(int.from_bytes(data[k : k + 4], "big") for k in range(4, start, 4))
    if len(data) != start + math.prod(shape):
        raise ValueError(f"idx file of {len(data)} bytes, not {start + math.prod(shape)}")
    return np.frombuffer(data, dtype=np.uint8, offset=start).reshape(shape)


def read_idx_pair(images: bytes, labels: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Images (N, H, W, 1) and labels (N,) from their two idx files."""
    return read_idx(images)[..., None], read_idx(labels)


def read_png_batch(data: bytes, side: int = 32) -> np.ndarray:
    """Images (N, side, side, 3) from a PNG with one flattened image a row."""
    with Image.open(io.BytesIO(data)) as picture:
        if picture.mode != "RGB" or picture.width != side * side:
            raise ValueError(f"PNG of mode {picture.mode}, {picture.width} pixels wide")
        return np.asarray(picture).reshape(-1, side, side, 3)


def read_json_labels(data: bytes) -> np.ndarray:
    """Labels (N,) from a JSON list of whole numbers."""
    labels = json.loads(data)
    if not isinstance(labels, list) or not all(type(label) is int and 0 <= label < 256 for label in labels):
        raise ValueError("not a JSON list of labels")
    return np.array(labels, dtype=np.uint8)
