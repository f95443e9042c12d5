# SPDX-License-Identifier: MIT
"""What the tests of built libraries share: they ask a tool about each, and print complaints."""

import subprocess


def printed(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout


def check(libraries, complaints_of):
    """Returns the exit status: 1 if there is a complaint, or no library."""
    complaints = [line for library in libraries for line in complaints_of(library)]
    for complaint in complaints:
        print(complaint)
    return 1 if complaints or not libraries else 0
