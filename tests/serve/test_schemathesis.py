"""The OpenAPI document holds: requests made from it, and from its breaking, are answered as it says."""

from __future__ import annotations

import pytest

from tests.serve.process import Serving

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("data", [True, False])
def test_the_document_holds(made, data):
    schemathesis = pytest.importorskip("schemathesis", reason="make serve-test installs it")
    from schemathesis.engine import events, from_schema

    more = ["--data", made.data] if data else []
    with Serving(made.paths["web"], made.paths["lambda"], *more) as one:
        schema = schemathesis.openapi.from_url(f"http://127.0.0.1:{one.port}/openapi.json")
        schema.config.update(base_url=f"http://127.0.0.1:{one.port}")
        schema.config.generation.update(max_examples=60)
        # Parts that fit the document may not fit each other: as many ids as rows, a T that does not fall.
        schema.config.checks.positive_data_acceptance.expected_statuses = ["200", "404", "422"]
        failures, checks = [], 0
        for event in from_schema(schema).execute():
            if isinstance(event, events.ScenarioFinished):
                for found in event.recorder.checks.values():
                    checks += len(found)
                    failures += [check.failure_info for check in found if check.failure_info is not None]
            assert not isinstance(event, events.NonFatalError), event
        assert checks > 500
        assert not failures, "\n\n".join(
            f"{failure.failure}\n{failure.code_sample}" for failure in failures[:8]
        )
