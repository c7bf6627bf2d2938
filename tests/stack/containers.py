"""The same servers as containers of the images that docker-compose.yml pins, where an engine answers."""

import shutil
import subprocess
import time
from functools import cache
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]


@cache
def has_engine():
    """Whether a container engine answers."""
    if shutil.which("docker") is None:
        return False
    try:
        asked = subprocess.run(["docker", "info"], capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return asked.returncode == 0


class ContainerProcess:
    """A container on the host's network that is used like a process: the same command, variables and addresses."""

    def __init__(self, name, command, folder, variables):
        from testcontainers.core.container import DockerContainer

        image = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"][name]["image"]
        container = (
            DockerContainer(image).with_command(list(command)).with_kwargs(network_mode="host", user="0")
        )
        for key, value in variables.items():
            container = container.with_env(key, value)
        for path, mode in ((ROOT / "collector-config", "ro"), (folder, "rw")):
            container = container.with_volume_mapping(str(path), str(path), mode)
        self._container = container.start()
        self.returncode = None

    def poll(self):
        """None while it runs."""
        if self.returncode is None:
            inner = self._container.get_wrapped_container()
            inner.reload()
            self.returncode = (
                None if inner.status in {"created", "running"} else inner.attrs["State"]["ExitCode"]
            )
        return self.returncode

    def wait(self, timeout_s=None):
        """Wait until it ended."""
        end_s = time.monotonic() + (timeout_s or 60)
        while self.poll() is None:
            if time.monotonic() > end_s:
                raise subprocess.TimeoutExpired("container", timeout_s)
            time.sleep(0.1)
        self._container.stop()

    def terminate(self):
        """Ask it to end."""
        self._container.get_wrapped_container().kill("SIGTERM")

    def kill(self):
        """End it."""
        self._container.get_wrapped_container().kill("SIGKILL")
