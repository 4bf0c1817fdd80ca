"""The progress bar of training: epoch, loss, accuracy and the time that is left."""

from types import TracebackType

from tqdm import tqdm


class Bar:
    """One bar for a whole run. Silent if not wanted, and where standard error is no terminal."""

    def __init__(self, total: int | None, epochs: int, shown: bool) -> None:
        self.epochs = epochs
        self.bar = tqdm(
            total=total, disable=None if shown else True, unit="step", leave=False, dynamic_ncols=True
        )

    def step(self, epoch: int, loss: float, accuracy: float | None) -> None:
        """One more step, with the means of the epoch so far."""
        if self.bar.disable:
            return
        text = f"loss {loss:.4f}" + ("" if accuracy is None else f", accuracy {100 * accuracy:.1f} %")
        self.bar.set_description_str(f"epoch {epoch}/{self.epochs}", refresh=False)
        self.bar.set_postfix_str(text, refresh=False)
        self.bar.update()

    def __enter__(self) -> "Bar":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.close()
