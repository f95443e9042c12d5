# SPDX-License-Identifier: MIT
"""Reads OpenMetrics text with the parser of Prometheus' own Python client.

As a program it parses standard input for the tests, since the package may belong to another Python.
"""

import json
import subprocess
import sys

PYTHONS = (sys.executable, "/usr/bin/python3")
NONE = "no Python here has prometheus_client (package python3-prometheus-client)"


class NoParser(Exception):
    """No Python on this machine has the package prometheus_client."""


def has_parser(python):
    try:
        return subprocess.run([python, "-c", "import prometheus_client.openmetrics.parser"],
                              capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def parse(text):
    """{family: {"type":, "unit":, "samples": [[name, labels, value], ...]}}, with floats as values.

    Raises ValueError if the text is wrong, and NoParser if there is nothing to parse it with.
    """
    python = next(filter(has_parser, PYTHONS), None)
    if not python:
        raise NoParser(NONE)
    done = subprocess.run([python, __file__], input=text, capture_output=True, text=True,
                          check=False, timeout=60)
    if done.returncode != 0:
        raise ValueError(done.stderr)
    return json.loads(done.stdout)


def histogram(family, **labels):
    """[(bound in ns, cumulative count), ...] of the bucket samples with these labels."""
    return [(round(float(sample[1]["le"]) * 1e9) if sample[1]["le"] != "+Inf" else None,
             int(sample[2])) for sample in family["samples"]
            if labels.items() <= sample[1].items()]


def main():
    # pylint: disable=import-outside-toplevel
    from prometheus_client.openmetrics.parser import text_string_to_metric_families
    families = {}
    for family in text_string_to_metric_families(sys.stdin.read()):
        assert family.name not in families and family.documentation, family
        families[family.name] = {"type": family.type, "unit": family.unit, "samples": [
            [sample.name, sample.labels, sample.value] for sample in family.samples]}
    json.dump(families, sys.stdout)


if __name__ == "__main__":
    main()
