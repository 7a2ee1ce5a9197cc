"""All tests here require java: for Kafka's tools and, in many tests, for a Kafka."""

from __future__ import annotations

import pytest

from tests.harness.reference_kafka import KafkaTools, Unavailable

# Its tests prove something about our broker. On Kafka they only check the tests themselves.
CONTROL = ("test_java_tools.py", "test_java_transactions.py", "test_word_count.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "/reference/" in str(item.path):
            item.add_marker(pytest.mark.reference)
            item.add_marker(pytest.mark.timeout(300))  # a JVM per command
            if item.path.name in CONTROL and "[kafka" in item.name:
                item.add_marker(pytest.mark.soak)


@pytest.fixture(scope="session")
def tools() -> KafkaTools:
    try:
        return KafkaTools()
    except Unavailable as reason:
        pytest.skip(f"no Java tools of Kafka: {reason}")
