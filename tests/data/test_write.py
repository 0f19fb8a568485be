"""Files that are written: whole or not at all, never over what is read, and into what is no file."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pyarrow as pa
import pytest

import likely
from likely.cli import run
from likely.data import atomic as replacing
from likely.data.write import write_rows

ROWS = "x,z,y\n1,u,a\n2,v,b\n3,u,a\n4,v,b\n5,,a\n6,v,b\n"
TABLE = pa.table({"a": [1, 2]})


def model():
    return likely.NaiveBayes().fit([[1.0], [2.0], [5.0]], [0, 0, 1])


WRITERS = {"save": lambda path: model().save(path), "write_rows": lambda path: write_rows([TABLE], path, "csv")}
every_writer = pytest.mark.parametrize("write", WRITERS.values(), ids=list(WRITERS))


@pytest.fixture
def files_have_names(monkeypatch):
    """As on systems, or file systems, where a file has a name from the beginning."""
    monkeypatch.setattr(replacing, "_UNNAMED", None)


@pytest.fixture(params=["as here", "named from the beginning"])
def both_ways(request):
    if request.param != "as here":
        request.getfixturevalue("files_have_names")


@every_writer
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o444])
def test_a_file_that_is_replaced_keeps_its_permissions(write, mode, tmp_path, both_ways):
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(mode)
    write(path)
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert path.read_bytes() != b"old"


@every_writer
def test_a_new_file_has_the_permissions_that_the_umask_leaves(write, tmp_path, both_ways):
    before = os.umask(0o027)
    try:
        write(tmp_path / "file")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


def test_nobody_else_reads_a_private_file_while_it_is_written(tmp_path, files_have_names):
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o600)
    with replacing.replacing(path):
        modes = [stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()]
    assert modes == [0o600, 0o600]


@every_writer
def test_a_link_stays_one_and_its_file_is_written(write, tmp_path, both_ways):
    (tmp_path / "inside").mkdir()
    (tmp_path / "link").symlink_to("inside/file")  # which is not there yet
    for _ in range(2):
        write(tmp_path / "link")
        assert os.readlink(tmp_path / "link") == "inside/file"
        assert os.listdir(tmp_path / "inside") == ["file"]
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(OSError, match="circle"):
        write(tmp_path / "circle")
    assert (tmp_path / "circle").is_symlink()


@every_writer
def test_a_fifo_is_written_into(write, tmp_path):
    write(tmp_path / "file")
    os.mkfifo(tmp_path / "fifo")
    reading = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    write(tmp_path / "fifo")
    assert os.read(reading, 1 << 16) == (tmp_path / "file").read_bytes()
    os.close(reading)
    assert stat.S_ISFIFO((tmp_path / "fifo").stat().st_mode)
    assert sorted(os.listdir(tmp_path)) == ["fifo", "file"]


def test_a_model_does_not_wait_for_somebody_who_reads_a_fifo(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(ValueError, match=r"^expected a FIFO that somebody reads, got '.*fifo', .*: read it first$"):
        model().save(tmp_path / "fifo")
    assert stat.S_ISFIFO((tmp_path / "fifo").stat().st_mode)


@every_writer
def test_a_device_is_written_into(write, tmp_path):
    node = tmp_path / "null"
    try:
        os.mknod(node, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        node.write_bytes(b"")
    except OSError:
        pytest.skip("no right to make a device here")
    write(node)
    assert stat.S_ISCHR(node.stat().st_mode)
    assert os.listdir(tmp_path) == ["null"]


@every_writer
def test_what_cannot_be_written_into_is_refused(write, tmp_path, monkeypatch):
    from socket import AF_UNIX, socket

    monkeypatch.chdir(tmp_path)  # the name of a socket is short
    with socket(AF_UNIX) as listening:
        listening.bind("socket")
        with pytest.raises(ValueError, match=r"^expected the name of a file to write, got 'socket', .*: choose"):
            write("socket")
    assert stat.S_ISSOCK(os.stat("socket").st_mode)
    with pytest.raises(IsADirectoryError, match=str(tmp_path)):
        write(tmp_path)
    assert os.listdir() == ["socket"]


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="files have a name from the beginning")
def test_a_writer_that_is_killed_leaves_nothing(tmp_path):
    (tmp_path / "file").write_text("old")
    code = (
        "import os, signal, sys; from likely.data.atomic import replacing\n"
        "with replacing(sys.argv[1]) as file:\n"
        "    file.write(b'half'); file.flush(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    killed = subprocess.run([sys.executable, "-c", code, tmp_path / "file"], cwd=Path(likely.__file__).parent.parent)
    assert killed.returncode == -signal.SIGKILL
    assert os.listdir(tmp_path) == ["file"]
    assert (tmp_path / "file").read_text() == "old"


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path, both_ways):
    (tmp_path / "file").write_text("old")

    def interrupted():
        yield TABLE
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_rows(interrupted(), tmp_path / "file", "csv")
    assert os.listdir(tmp_path) == ["file"]
    assert (tmp_path / "file").read_text() == "old"


def test_an_error_of_another_file_keeps_its_name(tmp_path):
    tables = (pa.table({"a": [(tmp_path / name).read_text()]}) for name in ["rows.csv"])
    with pytest.raises(FileNotFoundError, match=r"rows\.csv"):
        write_rows(tables, tmp_path / "out", "csv")
    assert os.listdir(tmp_path) == []


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("rows.csv", "parts/rows.csv", "texts/a/1.txt", "texts/b/1.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(ROWS)
    (tmp_path / "link.csv").symlink_to("rows.csv")
    os.link("rows.csv", "same.csv")
    words = ["-t", "y", "--model", "naive-bayes"]
    assert run(["fit", "rows.csv", *words, "-o", "m.likely"]) == 0
    assert run(["fit", "rows.csv", *words, "-o", "n.likely"]) == 0
    return tmp_path


@pytest.mark.parametrize(
    "line",
    [
        "fit rows.csv -t y -o rows.csv",
        "fit rows.csv -t y -o ./link.csv",
        "fit rows.csv -t y -o same.csv",
        "fit link.csv -t y -o rows.csv",
        "fit parts -t y -o parts/rows.csv",
        "fit parts/*.csv -t y -o parts/rows.csv",
        "fit n.likely parts/rows.csv -f csv -t y -o n.likely",
        "fit texts --text-dirs -o texts/b/1.txt",
        "cluster rows.csv -k 1 -o rows.csv",
        "merge m.likely n.likely -o n.likely",
        "predict m.likely rows.csv -o rows.csv",
        "predict m.likely parts -o parts/rows.csv",
        "predict m.likely rows.csv -o m.likely --to csv",
        "impute m.likely rows.csv -o link.csv",
        "impute m.likely rows.csv -o m.likely --to csv",
        "sample m.likely -o m.likely -f csv",
    ],
)
def test_no_command_writes_over_what_it_reads(folder, line, capsys):
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    capsys.readouterr()
    assert run(line.split()) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("likely: expected another file to write than those that are read, got ")
    assert told.err.count("\n") == 1
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_standard_streams_are_files_that_are_read_and_written_too(folder):
    def ran(*words, **streams):
        ended = subprocess.run([sys.executable, "-m", "likely", *words], stderr=subprocess.PIPE, text=True, **streams)
        return ended.returncode, ended.stderr

    with open("rows.csv", "rb") as rows:
        code, told = ran("fit", "-", "-t", "y", "-o", "same.csv", stdin=rows)
    assert (code, "'same.csv', which is standard input" in told) == (2, True)
    with open("rows.csv", "ab") as rows:
        code, told = ran("predict", "m.likely", "rows.csv", stdout=rows)
    assert (code, "standard output, which is 'rows.csv'" in told) == (2, True)
    assert (folder / "rows.csv").read_text() == ROWS
    (folder / "out.csv").write_text("before\n")
    for words in (["-o", "/dev/stdout"], []):
        with open("out.csv", "ab") as out:
            assert ran("predict", "m.likely", "rows.csv", "--only", *words, stdout=out) == (0, "")
    lines = (folder / "out.csv").read_text().splitlines()
    assert lines[0] == "before"
    assert lines[1:8] == lines[8:]


def test_commands_write_into_a_fifo(folder, capsys):
    assert run(["predict", "m.likely", "rows.csv"]) == 0
    told = capsys.readouterr().out
    os.mkfifo("fifo")
    read = []
    reader = Thread(target=lambda: read.append(Path("fifo").read_text()))
    reader.start()
    assert run(["predict", "m.likely", "rows.csv", "-o", "fifo"]) == 0
    reader.join()
    assert told.endswith(read[0])
    assert read[0].startswith("x,z,y,prediction")


def test_a_model_is_not_written_among_what_is_said(folder, capsys):
    assert run(["fit", "rows.csv", "-t", "y", "-o", "/dev/stdout"]) == 2
    assert "/dev/stdout: a model file is binary" in capsys.readouterr().err
