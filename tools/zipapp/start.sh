#!/bin/sh
# kgctl.pyz: this script, and behind it a zip file for Python. It starts what an earlier run unpacked.
# `python3 kgctl.pyz` does the same, but Python first loads what it needs to run a zip file.
for cache in "${KGCTL_PYZ_CACHE:-$XDG_CACHE_HOME/kgctl/pyz}" "${KGCTL_PYZ_CACHE:-$HOME/.cache/kgctl/pyz}"; do
    case $cache in /*) ;; *) continue ;; esac
    if [ -f "$cache/@DIGEST@.py" ]; then exec python3 "$cache/@DIGEST@.py" "$0" "$@"; fi
done
exec python3 "$0" "$@"
