"""`__main__.py` of kgctl.pyz: import kgctl from where the file was unpacked. Small, as every start compiles it."""

import os
import sys

# Each Python has its own directory: it finds all bytecode there, and no native module of another.
NAME = f"@DIGEST@-{sys.implementation.cache_tag}"


def caches():
    """Where it may be unpacked, the preferred place first."""
    get = os.environ.get
    if get("KGCTL_PYZ_CACHE"):
        yield os.path.abspath(get("KGCTL_PYZ_CACHE"))
        return
    if os.path.isabs(get("XDG_CACHE_HOME", "")):
        yield os.path.join(get("XDG_CACHE_HOME"), "kgctl", "pyz")
    if os.path.isabs(get("HOME", "")):
        yield os.path.join(get("HOME"), ".cache", "kgctl", "pyz")
    temporary = os.path.join(get("TMPDIR") or "/tmp", f"kgctl-pyz-{os.getuid()}")
    # Another user may have made it, and put other code there.
    if not os.path.lexists(temporary) or is_private(os.lstat(temporary)):
        yield temporary


def is_private(status):
    """A directory of this user, closed to all others."""
    return status.st_uid == os.getuid() and status.st_mode & 0o170077 == 0o040000


def main():
    for cache in caches():
        site = os.path.join(cache, NAME)
        if os.path.isdir(site):
            break
    else:
        import unpacking

        site = unpacking.unpack(list(caches()), NAME)
    sys.path[0] = site
    from kgctl.__main__ import main as run

    run()


if __name__ == "__main__":
    main()
