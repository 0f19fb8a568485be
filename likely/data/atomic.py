"""Files that are written whole or not at all: what was there stays as it was until all is written."""

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

_FOLDER = getattr(os, "O_DIRECTORY", 0)
_UNNAMED = getattr(os, "O_TMPFILE", None)
"""What opens a file without a name, which is gone when its writer is, however that ends; Linux has it."""


@contextmanager
def replacing(path: str | os.PathLike[str], *, wait: bool = True) -> Iterator[BinaryIO]:
    """Open a file to write, which takes the place of the one at ``path`` when the block ends without an error.

    It has the permissions of the file that it replaces; a new one those that the umask leaves. A symbolic link stays
    one: the file that it points to is replaced. A FIFO, a character device or an open file such as /dev/stdout is
    written into; ``wait``: until somebody reads the FIFO, as a shell does, which otherwise is an error.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = pathlib.Path(folder, "a")
    ...     with replacing(target) as file:
    ...         file.write(b"all of it"), target.exists()
    ...     target.read_bytes()
    (9, False)
    b'all of it'
    """
    target = os.fspath(path)
    if is_stream(target):
        with _named(target, always=False), _stream(target, wait) as file:
            yield file
        return
    with _named(target):
        old = _status(target)
        if old is not None and stat.S_ISDIR(old.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if old is not None and not stat.S_ISREG(old.st_mode):
            raise ValueError(
                f"expected the name of a file to write, got {target!r}, which is a socket or a block device: choose "
                "another name"
            )
        target = os.path.realpath(target)
        folder = os.path.dirname(target)
        name, descriptor = _created(folder, 0o666 if old is None else 0o600)
    file = open(descriptor, "wb")  # noqa: SIM115  closed below, before it takes its target
    try:
        with _named(target, always=False), file:
            yield file
            file.flush()
            with _named(target):
                if old is not None:
                    _like(file.fileno(), old)
                os.fsync(file.fileno())
                if name is None:
                    name = _name_given(file.fileno(), folder)
        with _named(target):
            os.replace(name, target)
            name = None
    finally:
        if name is not None:
            with suppress(FileNotFoundError):
                os.unlink(name)
    # The file is there; not every file system can also be told to keep its name.
    with suppress(OSError, AttributeError):
        opened = os.open(folder, os.O_RDONLY | _FOLDER)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def is_stream(path: str) -> bool:
    """Say whether a path is written into, not replaced: a FIFO, a character device, an open file as /dev/stdout."""
    status = _status(path)
    if status is None:
        return False
    return stat.S_ISFIFO(status.st_mode) or stat.S_ISCHR(status.st_mode) or open_file_of(path) is not None


def _status(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _stream(path: str, wait: bool) -> BinaryIO:
    # An open file is written where it is, after what is there: opened anew, it would be written from its beginning.
    known = open_file_of(path)
    if known is not None:
        return open(os.dup(known), "wb")
    try:
        descriptor = os.open(path, os.O_WRONLY | (0 if wait else getattr(os, "O_NONBLOCK", 0)))
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        raise ValueError(
            f"expected a FIFO that somebody reads, got {path!r}, which nobody does: read it first"
        ) from None
    if not wait and hasattr(os, "O_NONBLOCK"):
        os.set_blocking(descriptor, True)
    return open(descriptor, "wb")


def open_file_of(path: str) -> int | None:
    """Return the number of the open file of this process that a path names, such as 1 of /dev/stdout."""
    for _ in range(40):  # as many links as Linux follows
        folder, name = os.path.split(path)
        folder = os.path.realpath(folder)
        if name.isdecimal() and re.fullmatch(rf"/dev/fd|/proc/{os.getpid()}(/task/\d+)?/fd", folder):
            return int(name)
        try:
            path = os.path.join(folder, os.readlink(os.path.join(folder, name)))
        except OSError:
            return None
    return None


def _created(folder: str, mode: int) -> tuple[str | None, int]:
    """Return the name, if it has one, and the descriptor of a new file in a folder."""
    if _UNNAMED is not None:
        with suppress(OSError):  # not every file system knows files without a name
            descriptor = os.open(folder, os.O_WRONLY | _UNNAMED, mode)
            if os.path.exists(f"/proc/self/fd/{descriptor}"):  # by which it gets its name
                return None, descriptor
            os.close(descriptor)
    name = _hidden_name(folder)
    return name, os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)


def _hidden_name(folder: str) -> str:
    return os.path.join(folder, f".{os.urandom(8).hex()}.tmp")


def _name_given(descriptor: int, folder: str) -> str:
    """Give a name to a file that has none, and return it."""
    name = _hidden_name(folder)
    # Only a folder beside a path makes Python follow the link, which has to be.
    os.link(f"/proc/self/fd/{descriptor}", name, src_dir_fd=descriptor, follow_symlinks=True)
    return name


def _like(descriptor: int, old: os.stat_result) -> None:
    """Give a new file the owner, as far as that is allowed, and the permissions of the one that it replaces."""
    mode = stat.S_IMODE(old.st_mode)
    new = os.fstat(descriptor)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        try:
            os.chown(descriptor, old.st_uid, old.st_gid)
        except OSError:  # what the old group might do, another might not
            mode = mode & ~0o070 | (mode & 0o007) << 3
    with suppress(AttributeError):  # as Windows has no such permissions
        os.fchmod(descriptor, mode)


@contextmanager
def _named(path: str, *, always: bool = True) -> Iterator[None]:
    """Raise errors of the system with the name of the file; by default also those with that of another."""
    try:
        yield
    except OSError as error:
        if error.errno is None or not (always or error.filename is None):
            raise
        raise type(error)(error.errno, error.strerror, path) from None
