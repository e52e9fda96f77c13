#!/usr/bin/python3
"""Carries out the run list for the contract stub of chef-solo: of each recipe the
script beside it, with the attributes that the recipe would hand to it."""
import json
import os
import subprocess
import sys

attributes = json.load(open(sys.argv[1]))
environment = dict(
    os.environ, HOST=attributes["loom"]["hostname"], TITLE=attributes["web"]["title"],
    BACKENDS=attributes["haproxy"]["backends"], UNIT=attributes.get("site", {}).get("unit", ""))
for item in sys.argv[3].split(","):
    book, recipe = item.removeprefix("recipe[").removesuffix("]").split("::")
    subprocess.run(["sh", f"{sys.argv[2]}/{book}/files/{recipe}.sh"], env=environment, check=True)
