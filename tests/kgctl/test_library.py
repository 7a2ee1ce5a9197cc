"""The names that programs import."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import kgctl
from kgctl import errors
from kgctl.errors import BrokerError, KgctlError
from tests.harness import ROOT


def test_importing_the_package_imports_nothing_else() -> None:
    code = "import sys; before = set(sys.modules); import kgctl; print(*sorted(set(sys.modules) - before))"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert set(printed.stdout.split()) <= {"__future__", "kgctl"}


@pytest.mark.parametrize("name", kgctl.__all__)
def test_a_public_name_leads_to_its_place(name: str) -> None:
    assert getattr(kgctl, name) is getattr(importlib.import_module(kgctl._PLACES[name]), name)
    assert name in dir(kgctl)


def test_every_public_name_has_a_place() -> None:
    assert sorted(kgctl._PLACES) == sorted(kgctl.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        kgctl.Nothing  # noqa: B018


def test_every_public_error_is_a_kgctl_error_and_says_what_it_means() -> None:
    for name in errors.__all__:
        found = getattr(errors, name)
        assert issubclass(found, KgctlError)
        assert found.name


def test_an_error_about_permissions_has_a_class_of_its_own() -> None:
    assert type(BrokerError(29, "topic 'orders'")) is errors.AuthorizationFailed
    assert type(BrokerError(3, "topic 'orders'")) is BrokerError
