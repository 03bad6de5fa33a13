#!/usr/bin/env python3
"""Results of load generators through the command line: requests, figures with their definitions, and what a report says of them."""
import json
import pathlib
import sys

import harness

IMPORTS = pathlib.Path(__file__).resolve().parents[1] / "imports"
