"""Rows, tables, resume and engines, on a chapter whose rows take milliseconds."""

import contextlib
import io
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psutil
import pytest
from robustbook.cli import main
from robustbook.errors import BookError
from robustbook.results import Chapter, load_chapter
from robustbook.results.rows import Row, RowStore, row_id

HERE = Path(__file__).parent
NOTE = {"cpu": "c", "versions": {"torch": "1"}, "date": "2026-01-01", "data": {}, "definitions": {"f": "1"}}


class Done(NamedTuple):
    """What a command left behind."""

    returncode: int
    stdout: str
    stderr: str


def command(monkeypatch, args, env) -> Done:
    """Call the command line in this process: it starts in no time, and everything else is the same."""
    out, err = io.StringIO(), io.StringIO()
    with monkeypatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        patch.setattr(sys, "argv", ["robustbook", *args])
        for name, value in env.items():
            patch.setenv(name, value)
        with pytest.raises(SystemExit) as stopped:
            main()
    return Done(stopped.value.code, out.getvalue(), err.getvalue())


@pytest.fixture
def house(tmp_path, monkeypatch):
    """An empty repository with the toy chapter, and a function that calls the command line in it."""
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: x\n")
    shutil.copy(HERE / "toy_chapter.md", tmp_path / "notebooks" / "toy.md")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROBUSTBOOK_RESULTS", str(tmp_path / "results"))

    def call(*args, **env):
        return command(monkeypatch, args, env)

    return tmp_path, call


def rows_of(folder, profile="laptop"):
    path = folder / "results" / profile / "toy" / "wave.csv"
    return [line.split(",")[0] for line in path.read_text().splitlines()[1:]] if path.exists() else []


def test_run_writes_rows_table_and_provenance(house):
    folder, call = house
    done = call("run", "toy", "--profile", "smoke", "--engine", "inline")
    assert done.returncode == 0, done.stderr
    table = (folder / "results" / "smoke" / "toy-wave.csv").read_text().splitlines()
    assert table[0] == "seed,mean,sine" and len(table) == 5
    provenance = json.loads((folder / "results" / "smoke" / "toy-wave.json").read_text())
    assert provenance["rows"] == 4 and provenance["seeds"] == [0, 1, 2, 3]
    assert set(provenance["versions"]) >= {"python", "torch", "numpy"}
    arrays = RowStore("smoke", "toy", "wave").arrays(row_id({"seed": 2, "pause": 0.0}))
    assert arrays["seen"].tolist() == [2, 3, 4]


def test_a_finished_table_is_not_computed_again(house):
    folder, call = house
    log = folder / "log"
    for expected in (4, 4, 8):
        extra = ["--fresh"] if expected == 8 else []
        call("run", "toy", "--profile", "smoke", "--engine", "inline", *extra, TOY_LOG=str(log))
        assert len(log.read_text().split()) == expected


def test_killed_at_random_moments_nothing_is_lost_or_repeated(house):
    """kill -9 of the whole process group, ten times: finished rows stay and are never measured again."""
    folder, _ = house
    log, chance = folder / "log", random.Random(0)
    log.touch()
    start = [sys.executable, "-c", "from robustbook.cli import main; main()", "run", "toy", "--engine"]
    how = {"cwd": folder, "env": {**os.environ, "TOY_LOG": str(log)}}
    for kill in range(10, -1, -1):
        engine = "local" if kill % 3 == 0 else "inline"  # the last, which is left to finish, is local
        stored, measured = set(rows_of(folder)), len(log.read_text().split())
        process = subprocess.Popen([*start, engine], start_new_session=True, stderr=subprocess.DEVNULL, **how)
        if kill:
            give_up = time.monotonic() + 60
            while (
                process.poll() is None and len(rows_of(folder)) <= len(stored) and time.monotonic() < give_up
            ):
                time.sleep(0.005)
            time.sleep(chance.uniform(0, 0.15))
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        now = rows_of(folder)
        assert stored <= set(now), "a finished row was lost"
        assert len(now) == len(set(now)), "a row stands twice"
        again = {row_id({"seed": int(s), "pause": 0.05}) for s in log.read_text().split()[measured:]}
        assert not stored & again, "a finished row was measured again"
        json.loads((folder / "results" / "laptop" / "toy" / "wave.json").read_text())
    assert process.returncode == 0
    assert len(rows_of(folder)) == 40


def test_workers_of_a_killed_run_end_with_it(house):
    """Only the caller is killed; its workers, in the middle of long rows, must not go on for nobody."""
    folder, _ = house
    start = [
        sys.executable,
        "-c",
        "from robustbook.cli import main; main()",
        "run",
        "toy",
        "--engine",
        "local",
    ]
    process = subprocess.Popen(
        start, cwd=folder, env={**os.environ, "TOY_SLOW": "300"}, stderr=subprocess.DEVNULL
    )
    give_up = time.monotonic() + 60
    workers = []
    while len(workers) < 2 and time.monotonic() < give_up:
        time.sleep(0.2)
        children = psutil.Process(process.pid).children(recursive=True)
        workers = [child for child in children if "popen_loky" in " ".join(child.cmdline())]
    assert len(workers) == 2
    # A worker watches once it has its first row: by then it has loaded torch.
    while time.monotonic() < give_up and any(w.num_threads() < 2 or "torch" not in maps(w) for w in workers):
        time.sleep(0.2)
    time.sleep(1)
    process.kill()
    process.wait()
    _, alive = psutil.wait_procs(workers, timeout=20)
    assert not alive


def test_a_run_of_one_job_outlives_the_shell_that_started_it(house):
    """`robustbook run ... --jobs 1 &` and the terminal is closed: the rows are measured all the same."""
    folder, _ = house
    run = f"{sys.executable} -c 'from robustbook.cli import main; main()' run toy --profile smoke --jobs 1"
    shell = f"{run} > run.log 2>&1 & while [ ! -s started ]; do sleep 0.1; done"
    env = {**os.environ, "TOY_LOG": "started", "TOY_SLOW": "1.5"}
    subprocess.run(["sh", "-c", shell], cwd=folder, env=env, check=True, timeout=60)
    give_up = time.monotonic() + 60
    while len(rows_of(folder, "smoke")) < 4 and time.monotonic() < give_up:
        time.sleep(0.2)
    assert len(rows_of(folder, "smoke")) == 4


def maps(process):
    """The files a process has mapped, as one text."""
    return Path(f"/proc/{process.pid}/maps").read_text()


def test_engines_give_the_same_bytes(house, tmp_path):
    """Inline, two local processes, and a real Dask cluster: scheduler and two workers on loopback."""
    folder, call = house
    tables = {}
    with dask_cluster(tmp_path) as address:
        for engine in ("inline", "local", "dask"):
            extra = ["--scheduler", address] if engine == "dask" else []
            where = folder / engine
            done = call(
                "run", "toy", "--profile", "paper", "--engine", engine, *extra, ROBUSTBOOK_RESULTS=str(where)
            )
            assert done.returncode == 0, done.stderr
            names = ("toy/wave.csv", "toy-wave.csv")
            tables[engine] = [(where / "paper" / name).read_bytes() for name in names]
            assert len(tables[engine][0].splitlines()) == 41
    assert tables["inline"] == tables["local"] == tables["dask"]


@contextlib.contextmanager
def dask_cluster(folder):
    """A scheduler and two workers, as separate processes on this machine."""
    file = folder / "scheduler.json"
    base = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    options = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)]
    processes = [subprocess.Popen([*base, *options], **quiet)]
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(file)]
    for _ in range(2):
        one = ["--nthreads", "1", "--no-dashboard", "--host", "127.0.0.1", "--local-directory", str(folder)]
        processes.append(subprocess.Popen([*worker, *one], **quiet))
    try:
        give_up = time.monotonic() + 60
        while not file.exists() and time.monotonic() < give_up:
            time.sleep(0.1)
        yield json.loads(file.read_text())["address"]
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(timeout=30)


def test_a_failing_row_is_named_and_the_others_are_kept(house):
    folder, call = house
    done = call("run", "toy", "--profile", "smoke", "--engine", "inline", TOY_FAIL="2")
    assert done.returncode == 1
    assert "row seed=2, pause=0.0 failed: ValueError: asked to fail" in done.stderr
    assert len(rows_of(folder, "smoke")) == 3
    assert call("run", "toy", "--profile", "smoke").returncode == 0
    assert len(rows_of(folder, "smoke")) == 4


def test_stale_rows_are_listed_verified_and_recomputed(house):
    folder, call = house
    assert "size not known yet" in call("run", "toy", "--profile", "smoke", "--dry-run").stdout
    call("run", "toy", "--profile", "smoke", "--engine", "inline")
    again = call("run", "toy", "--profile", "smoke", "--fresh", "--dry-run").stdout
    stored = sum(file.stat().st_size for file in (folder / "results/smoke/toy").glob("[!.]*"))
    assert f"about {stored / 1000:.0f} kB of rows" in again
    source = folder / "notebooks" / "toy.md"
    text = source.read_text()

    source.write_text(text.replace("time.sleep(pause +", "time.sleep(2 * pause +"))
    assert " 4      0      4" in call("run", "toy", "--profile", "smoke", "--dry-run").stdout
    verified = call("run", "toy", "--profile", "smoke", "--verify")
    assert verified.returncode == 0 and "4 rows re-signed" in verified.stdout
    assert " 4      0      0" in call("run", "toy", "--profile", "smoke", "--dry-run").stdout

    source.write_text(text.replace("x.sin().sum()", "x.cos().sum()"))
    verified = call("run", "toy", "--profile", "smoke", "--verify")
    assert verified.returncode == 2 and "differs from the stored one" in verified.stderr
    before = (folder / "results" / "smoke" / "toy-wave.csv").read_text()
    assert call("run", "toy", "--profile", "smoke").returncode == 0
    assert (folder / "results" / "smoke" / "toy-wave.csv").read_text() == before, (
        "stale rows stay until asked"
    )
    call("run", "toy", "--profile", "smoke", "--stale")
    assert (folder / "results" / "smoke" / "toy-wave.csv").read_text() != before


def test_measured_seconds_do_not_count_as_a_difference(house):
    folder, call = house
    source = folder / "notebooks" / "toy.md"
    timed = source.read_text().replace("return {", 'return {"seconds": time.perf_counter(), ')
    source.write_text(timed)
    call("run", "toy", "--profile", "smoke", "--engine", "inline")
    source.write_text(timed.replace("time.sleep(pause +", "time.sleep(2 * pause +"))
    assert "4 rows re-signed" in call("run", "toy", "--profile", "smoke", "--verify").stdout


def test_reading_never_computes_laptop_rows(house):
    chapter = load_chapter("toy", "laptop")
    shown = chapter.show("toy-wave")
    assert "Computed at <b>smoke</b> scale" in shown.markup
    assert rows_of(house[0], "laptop") == [] and len(rows_of(house[0], "smoke")) == 4


def test_a_table_that_is_shown_twice_has_two_ids(house):
    chapter = load_chapter("toy", "smoke")
    ids = [
        re.search(r'<figure class="rb-figure" id="([^"]+)"', chapter.show("toy-wave").markup)[1] for _ in "12"
    ]
    assert ids == ["toy-wave-table", "toy-wave-table-2"]


def test_a_stale_table_is_shown_with_a_note(house):
    folder, call = house
    call("run", "toy", "--profile", "smoke", "--engine", "inline")
    source = folder / "notebooks" / "toy.md"
    source.write_text(source.read_text().replace("x.sin().sum()", "x.cos().sum()"))
    shown = load_chapter("toy", "smoke").show("toy-wave")
    assert "Stale: 4 of 4 rows were measured before a change of wave" in shown.markup


def test_figures_are_redrawn_from_the_table(house):
    folder, call = house
    missing = call("figures", "toy-wave", "--profile", "smoke")
    assert missing.returncode == 2 and "robustbook run toy-wave --profile smoke" in missing.stderr
    call("run", "toy", "--profile", "smoke", "--engine", "inline")
    assert call("figures", "toy-wave", "--profile", "smoke").returncode == 0
    first = (folder / "figures" / "toy-wave.png").read_bytes()
    assert first.startswith(b"\x89PNG") and (folder / "figures" / "toy-wave.pdf").read_bytes().startswith(
        b"%PDF"
    )
    call("figures", "toy-wave", "--profile", "smoke")
    assert (folder / "figures" / "toy-wave.png").read_bytes() == first


MISTAKES = {
    "chapter": (["run", "toi"], "did you mean toy"),
    "profile": (["run", "toy", "--profile", "labtop"], "did you mean laptop"),
    "engine": (["run", "toy", "--engine", "dusk"], "did you mean dask"),
    "artifact": (["run", "MOMENT-T44"], "MOMENT-T4"),
    "unwritten chapter": (["run", "THESIS-F4.3"], "not written yet"),
    "command": (["rum", "toy"], "did you mean run"),
    "option": (["run", "toy", "--frehs"], "fresh"),
    "no target": (["run"], "TARGETS"),
    "figure": (["figures", "toy-wafe"], "did you mean toy-wave"),
    "no scheduler": (["run", "toy", "--engine", "dask"], "--scheduler"),
}


def test_without_arguments_the_command_explains_itself(house):
    done = house[1]()
    assert done.returncode == 2 and "Commands:" in done.stdout and len(done.stdout.splitlines()) > 8


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_one_line_and_exit_two(house, mistake):
    arguments, hint = MISTAKES[mistake]
    done = house[1](*arguments)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert hint in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (":tags: [parameters]\n", "", "tagged 'parameters'"),
        ('profile = "smoke"', 'profil = "smoke"', "does not set 'profile'"),
        ('Chapter("toy", profile)', 'Chapter("tay", profile)', "starts with 'tay-'"),
        ("import os", "import ossss", "cell 2: ModuleNotFoundError"),
        ("rows=(4, 40, 40)", "rows=(4, 40)", "three values"),
        ('"toy-wave", wave', '"MOMENT-T4", wave', "belongs to chapter 'moments'"),
    ],
)
def test_a_chapter_that_breaks_the_rules_is_refused(house, old, new, message):
    source = house[0] / "notebooks" / "toy.md"
    assert old in source.read_text()
    source.write_text(source.read_text().replace(old, new))
    with pytest.raises(BookError, match=re.escape(message)):
        load_chapter("toy", "smoke").view("toy-wave")


@pytest.mark.parametrize("damage", ["truncated json", "wrong json", "no id column"])
def test_a_damaged_store_is_an_error_not_an_empty_table(store, damage):
    rows = RowStore("smoke", "toy", "wave")
    rows.put(Row({"seed": 0}, "f"), {"y": 1.5}, seconds=1.0, note=NOTE, order=[])
    if damage == "truncated json":
        rows.json.write_text(rows.json.read_text()[:30])
    elif damage == "wrong json":
        rows.json.write_text("[]")
    else:
        rows.csv.write_text("seed,y\n0,1.5\n")
    with pytest.raises(BookError, match="damaged"):
        rows.read()


def test_values_come_back_as_they_were(store):
    rows = RowStore("smoke", "toy", "wave")
    values = {"a": 0.1 + 0.2, "b": 3, "c": "text, with comma", "d": np.float64(1e-300), "e": True, "f": None}
    rows.put(Row({"seed": 0}, "f"), values, seconds=1.0, note=NOTE, order=[])
    frame = rows.frame(rows.read(), [row_id({"seed": 0})])
    assert frame["a"][0] == 0.1 + 0.2 and frame["d"][0] == 1e-300 and frame["c"][0] == "text, with comma"
    assert bool(frame["e"][0]) is True and np.isnan(frame["f"].astype(float)[0])
    with pytest.raises(BookError, match="scalars"):
        rows.put(Row({"seed": 1}, "f"), {"a": [1, 2]}, seconds=1.0, note=NOTE, order=[])


def test_a_table_has_the_settings_of_its_rows_alone(store):
    """Else a page, whose later cells add settings, would write another record than the command does."""
    chapter = Chapter("toy", "smoke")
    chapter.settings(n=(2, 3, 4), other=(1, 1, 1))
    rows = chapter.experiment(lambda s: [{"seed": k} for k in range(s.n)])(lambda seed: {"y": seed})
    chapter.table("toy-rows", rows)(lambda rows: rows[["seed", "y"]])
    chapter.result("toy-rows")
    record = store / "smoke" / "toy-rows.json"
    before = record.read_text()
    assert json.loads(before)["settings"] == {"n": 2}
    chapter.settings(later=(1, 1, 1))
    chapter._tables.clear()
    chapter.result("toy-rows")
    assert record.read_text() == before
    with pytest.raises(AttributeError, match="no setting 'm'"):
        chapter.experiment(lambda s: [{"seed": s.m}])(lambda seed: {}).read_settings("smoke")


def test_repeated_rows_and_odd_parameters_are_refused():
    chapter = Chapter("toy", "smoke")
    chapter.settings(n=(1, 1, 1))
    twice = chapter.experiment(lambda s: [{"seed": 0}, {"seed": 0}])(lambda seed: {"y": seed})
    with pytest.raises(BookError, match="repeats a row"):
        twice.rows("smoke")
    with pytest.raises(BookError, match="plain scalars"):
        row_id({"seed": [0]})


def test_rehearsal_runs_every_paper_row_and_stores_nothing(house):
    folder, call = house
    done = call("rehearse", "toy")
    assert done.returncode == 0 and "40 rows of the paper profile rehearsed" in done.stdout
    assert not (folder / "results").exists()


def test_a_stand_in_may_belong_to_some_profiles_alone(store):
    """Tables say at which profiles their data was replaced."""
    chapter = Chapter("moments", "smoke")
    chapter.settings(values=((1,), (1,), (1,)))

    @chapter.experiment(lambda s: [dict(value=value) for value in s.values])
    def measured(value):
        return {"double": 2 * value}

    for id, stand_in in (
        ("moments-a", {"smoke": "drawn"}),
        ("moments-b", {"paper": "drawn"}),
        ("moments-c", "drawn"),
    ):
        chapter.table(id, measured, stand_in=stand_in)(lambda rows: rows)
    said = [chapter.result(f"moments-{k}").provenance["stand_in"] for k in "abc"]
    assert said == ["drawn", "", "drawn"]
