"""One notebook through papermill, in this interpreter's own kernel."""

import logging
import re
from collections.abc import Mapping
from pathlib import Path

import nbformat
import papermill
from ipykernel.kernelspec import get_kernel_dict
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient.exceptions import DeadKernelError
from papermill.exceptions import PapermillExecutionError
from papermill.execute import remove_error_markers

from ..errors import BookError
from ..storage import repository
from .sources import Scalar, number_cells


class CellFailed(BookError):
    """A cell of a chapter or page raised."""


def run(
    notebook: nbformat.NotebookNode,
    name: str,
    *,
    parameters: Mapping[str, Scalar],
    environment: Mapping[str, str],
    failed: Path,
) -> nbformat.NotebookNode:
    """The executed notebook. A failure leaves it, with the traceback in it, as the file `failed`."""
    logging.getLogger("papermill").setLevel(logging.ERROR)
    failed.parent.mkdir(parents=True, exist_ok=True)
    try:
        executed = papermill.execute_notebook(
            notebook,
            failed,
            parameters=dict(parameters),
            kernel_name="python3",
            language="python",
            progress_bar=False,
            request_save_on_cell_execute=False,
            kernel_manager_class=_kernel_manager(environment),
            resources={"metadata": {"path": str(repository())}},
        )
    except PapermillExecutionError as error:
        cells = remove_error_markers(nbformat.read(failed, as_version=4)).cells
        what = _failure(cells[: error.cell_index + 1], name, error)
        raise CellFailed(f"{what} (traceback: {failed})") from error
    except DeadKernelError as error:
        raise CellFailed(f"{name}: its kernel died; perhaps the memory ran out") from error
    failed.unlink(missing_ok=True)
    return _tidy(executed)


def _kernel_manager(environment: Mapping[str, str]) -> type[AsyncKernelManager]:
    """A kernel manager that knows one kernel: this interpreter. Installed kernelspecs are not asked."""
    own = get_kernel_dict(extra_arguments=["--log-level=50"])
    # jupyter_client expands $NAME in these values; a folder may have a dollar sign in its name.
    own["env"] = {name: value.replace("$", "$$") for name, value in environment.items()}
    spec = KernelSpec(**own)

    class ThisInterpreter(AsyncKernelManager):
        @property
        def kernel_spec(self) -> KernelSpec:
            return spec

    return ThisInterpreter


def _failure(cells: list[nbformat.NotebookNode], name: str, error: PapermillExecutionError) -> str:
    """Chapter, number of the code cell in the source, heading above it, exception."""
    number, heading = 0, name
    for cell in cells:
        if cell.cell_type == "markdown":
            heading = (re.findall(r"^#{1,6} +(.+?) *$", cell.source, re.MULTILINE) or [heading])[-1]
        elif "injected-parameters" not in cell.metadata.get("tags", []):
            number += 1
    message = " ".join(str(error.evalue).split())
    return f"{name}: cell {number}, under “{heading}”, failed with {error.ename}: {message}"


def _tidy(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Leave out what differs from run to run: timings, and the paths papermill writes down."""
    notebook.metadata.pop("papermill", None)
    for cell in notebook.cells:
        for key in ("papermill", "execution"):
            cell.metadata.pop(key, None)
    return number_cells(notebook)


def anchors(notebook: nbformat.NotebookNode) -> tuple[str, ...]:
    """HTML ids in outputs and MyST targets in prose: what other pages may link to."""
    found: set[str] = set()
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            found.update(re.findall(r"^\(([a-z0-9-]+)\)=", cell.source, re.MULTILINE))
            found.update(re.findall(r"^:name: ([a-z0-9-]+)", cell.source, re.MULTILINE))
        for output in cell.get("outputs", []):
            page = "".join(output.get("data", {}).get("text/html", ""))
            found.update(re.findall(r'\bid="([a-z0-9-]+)"', page))
    return tuple(sorted(found))
