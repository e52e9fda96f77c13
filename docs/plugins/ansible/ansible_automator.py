#!/usr/bin/env python3
"""An automator for Loom that runs Ansible playbooks against one node.

Ansible runs here, on the provisioner (Debian package ansible-core), and reaches
the node through the ssh program with the configuration that Loom lends: no key
and no password passes through this program. Standard library only.
"""

import json
import os
import signal
import subprocess
import sys
import threading

ACTIONS = ("bootstrap", "install", "configure", "initialize", "start", "stop", "remove")
UNSUPPORTED, UNUSABLE = 64, 65


def say(**message):
    print(json.dumps(message), flush=True)


def fail(message, retryable=None):
    result = {"t": "result", "status": 1, "message": message}
    if retryable is not None:
        result["retryable"] = retryable
    say(**result)
    sys.exit(1)


def read_request():
    try:
        request = json.load(sys.stdin)
        fields = request["input"]["fields"]
        if not isinstance(fields, dict):
            raise TypeError("input.fields is no object")
        return request, fields
    except (ValueError, KeyError, TypeError) as error:
        print(f"standard input holds no request: {error}", file=sys.stderr)
        sys.exit(UNUSABLE)


def find_playbook(name):
    """Gives the path of a playbook among the tenant's resources."""
    if not name:
        fail("field “playbook” is empty; name a playbook resource", retryable=False)
    for kind in ("playbooks", "projects"):
        # The current directory holds the resources; nothing outside is looked at.
        root = os.path.abspath(kind)
        path = os.path.normpath(os.path.join(root, name))
        if path.startswith(root + os.sep) and os.path.isfile(path):
            return path
    fail(f"there is no playbook “{name}”; upload it as a resource of type playbooks and synchronise", retryable=False)


def variables(request, fields, action):
    try:
        given = json.loads(fields.get("extra_vars") or "{}")
        if not isinstance(given, dict):
            raise ValueError("it is no object")
    except ValueError as error:
        fail(f"field “extra_vars” is no JSON object: {error}", retryable=False)
    config = request.get("task", {}).get("config", {})
    given["loom"] = {
        "action": action,
        "service": request["input"].get("service"),
        "hostname": request["input"].get("hostname"),
        "cluster": config.get("cluster", {}),
        "nodes": config.get("nodes", {}),
    }
    return given


def write_private(name, text):
    path = os.path.join(os.environ["LOOM_SCRATCH"], name)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    return path


def environment():
    scratch = os.environ["LOOM_SCRATCH"]
    return dict(
        os.environ,
        HOME=scratch,
        ANSIBLE_HOME=scratch,
        ANSIBLE_LOCAL_TEMP=scratch,
        ANSIBLE_SSH_ARGS="-F " + os.environ["LOOM_SSH_CONFIG"],
        ANSIBLE_HOST_KEY_CHECKING="True",
        ANSIBLE_PIPELINING="True",
        ANSIBLE_NOCOLOR="1",
        ANSIBLE_RETRY_FILES_ENABLED="False",
        ANSIBLE_DEPRECATION_WARNINGS="False",
        PYTHONUNBUFFERED="1",
    )


def run(command):
    """Runs a command and passes its output on line by line; gives the exit status."""
    stopped, child = threading.Event(), None

    def stop(_number, _frame):
        stopped.set()
        if child:
            child.terminate()  # Ansible ends its own ssh processes

    # Before the child is there: a SIGTERM in between would leave it behind.
    signal.signal(signal.SIGTERM, stop)
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env=environment(), text=True, errors="replace")
    if stopped.is_set():
        child.terminate()

    def pass_on(stream, name):
        for line in stream:
            say(t="log", stream=name, msg=line.rstrip("\n"))

    readers = [threading.Thread(target=pass_on, args=pair) for pair in ((child.stdout, "stdout"), (child.stderr, "stderr"))]
    for reader in readers:
        reader.start()
    status = None
    while status is None:
        try:
            # With a limit it looks every now and then; without one, a signal that comes
            # just before it waits is noticed when the playbook has ended.
            status = child.wait(timeout=60)
        except subprocess.TimeoutExpired:
            pass
    for reader in readers:
        reader.join()
    if stopped.is_set():
        sys.exit(143)
    return status


def ansible():
    return os.environ.get("ANSIBLE_PLAYBOOK") or "ansible-playbook"


def bootstrap():
    try:
        version = subprocess.run([ansible(), "--version"], capture_output=True, text=True, check=True, timeout=60,
                                 env=dict(os.environ, ANSIBLE_HOME=os.environ["LOOM_SCRATCH"]))
    except (OSError, subprocess.SubprocessError) as error:
        fail(f"ansible-playbook does not run on the provisioner; install the package ansible-core there: {error}", retryable=False)
    say(t="log", msg=version.stdout.splitlines()[0] if version.stdout else "ansible-playbook runs")
    say(t="result", status=0)


def play(request, fields, action):
    playbook = find_playbook(fields.get("playbook"))
    values = variables(request, fields, action)
    if not os.environ.get("LOOM_SSH_CONFIG"):
        fail("Loom lent no sign-in to the node")
    sudo = (request.get("ssh") or {}).get("sudo", False)
    inventory = write_private("inventory", f"node ansible_become={'true' if sudo else 'false'} ansible_python_interpreter=auto_silent\n")
    command = [ansible(), "--inventory", inventory, "--extra-vars", "@" + write_private("vars.json", json.dumps(values)), playbook]
    if fields.get("tags"):
        command[1:1] = ["--tags", fields["tags"]]
    say(t="progress", msg=f"playing {fields['playbook']} for {action}")
    try:
        status = run(command)
    except OSError as error:
        fail(f"ansible-playbook does not run on the provisioner; install the package ansible-core there: {error}", retryable=False)
    if status == 0:
        say(t="result", status=0)
        return
    if status == 4:
        fail(f"Ansible cannot reach the node (playbook {fields['playbook']})", retryable=True)
    fail(f"playbook {fields['playbook']} failed: ansible-playbook exited with {status}")


def main():
    if len(sys.argv) != 3 or sys.argv[1] != "automator" or sys.argv[2] not in ACTIONS:
        sys.exit(UNSUPPORTED)
    request, fields = read_request()
    if sys.argv[2] == "bootstrap":
        bootstrap()
    else:
        play(request, fields, sys.argv[2])


if __name__ == "__main__":
    main()
