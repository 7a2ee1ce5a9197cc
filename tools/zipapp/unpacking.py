"""Unpacks kgctl.pyz at its first run."""

import io
import os
import shutil
import sys
import tempfile
import zipfile

PYTHONS = "@PYTHONS@"
MACHINE = "@MACHINE@"
PAYLOAD, START = "site.zip", "start.py"


def unpack(caches, name):
    """Unpack into the first directory that can be written, and return where."""
    check_python()
    problem = None
    for cache in caches:
        try:
            os.makedirs(cache, mode=0o700, exist_ok=True)
            return unpack_into(cache, name)
        except OSError as error:
            problem = problem or error
    raise failure(
        f"cannot unpack kgctl.pyz: {problem or 'no directory'}; set KGCTL_PYZ_CACHE to a directory that you may write to"
    )


def check_python():
    machine = f"{sys.platform}-{os.uname().machine}"
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    if sys.implementation.name != "cpython" or python not in PYTHONS.split() or machine != MACHINE:
        raise failure(
            f"this kgctl.pyz is for CPython {PYTHONS.replace(' ', ', ')} on {MACHINE}, not for {sys.implementation.name} {python} on "
            f"{machine}; install kgctl with pip, pipx or uv"
        )


def unpack_into(cache, name):
    """Unpack beside the final place, and move it there at once: a start that is killed leaves no half of it."""
    target = os.path.join(cache, name)
    draft = tempfile.mkdtemp(prefix=f"{name}.", suffix=".draft", dir=cache)
    try:
        with zipfile.ZipFile(os.path.dirname(__file__)) as outer:
            payload, start = io.BytesIO(outer.read(PAYLOAD)), outer.read(START)
        with zipfile.ZipFile(payload) as inner:
            inner.extractall(draft)
        compile_missing(draft)
        # A power cut must not leave empty files behind the name.
        os.sync()
        try:
            os.rename(draft, target)
        except OSError:
            # Another start was faster.
            if not os.path.isdir(target):
                raise
        write_start(cache, name.partition("-")[0], start)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return target


def write_start(cache, digest, content):
    """The file that the shell script in front of the zip file looks for."""
    descriptor, draft = tempfile.mkstemp(prefix=f"{digest}.", suffix=".draft", dir=cache)
    with open(descriptor, "wb") as file:
        file.write(content)
    os.replace(draft, os.path.join(cache, f"{digest}.py"))


def compile_missing(draft):
    """The file holds the bytecode of the Python that built it."""
    if os.path.exists(os.path.join(draft, "kgctl", "__pycache__", f"__main__.{sys.implementation.cache_tag}.pyc")):
        return
    import compileall
    import py_compile

    sys.stderr.write("Preparing kgctl for this version of Python, once ...\n")
    compileall.compile_dir(draft, quiet=2, workers=0, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)


def failure(message):
    sys.stderr.write(f"Error: {message}\n")
    return SystemExit(1)
