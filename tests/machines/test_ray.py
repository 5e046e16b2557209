"""Ray from PyPI: a cluster of three nodes on the loopback, one of which is removed while its tasks run."""

import json
import os
import subprocess
import time
import unittest
from pathlib import Path

from support import CACHE, ROUNDS, MachineTest, assize, environment, files_with_secret, wait_until

PYTHON = CACHE / "ray/bin/python"

# All traffic stays on the loopback; Ray would replace 127.0.0.1 by the address of the machine.
# A cluster in a process of its own: it prints its address, removes a node when asked to, and ends with its input.
CLUSTER = """
import os, sys
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
from ray.cluster_utils import Cluster
os.makedirs("/tmp/ray", exist_ok=True)  # Ray notes its address there
cluster = Cluster(initialize_head=True, head_node_args={
    "num_cpus": 2, "include_dashboard": False, "node_ip_address": "127.0.0.2", "temp_dir": sys.argv[1]})
nodes = [cluster.add_node(num_cpus=2, node_ip_address="127.0.0.2") for _ in range(2)]
print(cluster.address, flush=True)
for line in sys.stdin:
    if line.strip() == "remove":
        cluster.remove_node(nodes.pop(), allow_graceful=False)
        print("removed", flush=True)
cluster.shutdown()
"""


@unittest.skipUnless(PYTHON.exists(), "no Ray is installed (tests/machines/install.sh ray)")
class RayTest(MachineTest):
    latency_ms = 400

    def start_cluster(self):
        # Sockets have short paths.
        self.logs = Path(f"/tmp/assize-ray-{os.getpid()}")
        self.addCleanup(subprocess.run, ["rm", "-rf", str(self.logs)])
        with open(self.directory / "cluster.log", "wb") as log:
            plain = {name: value for name, value in environment().items() if name != "SERVICE_TOKEN"}
            self.cluster = subprocess.Popen(
                [PYTHON, "-c", CLUSTER, str(self.logs)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=plain
            )
        self.addCleanup(self.stop_cluster)
        return self.cluster.stdout.readline().strip()

    def stop_cluster(self):
        self.cluster.stdin.close()
        try:
            self.cluster.wait(60)
        except subprocess.TimeoutExpired:
            self.cluster.kill()
            self.cluster.wait()
        self.cluster.stdout.close()

    def test_a_lost_node_costs_no_trial_and_doubles_none(self):
        address = self.start_cluster()
        self.assertTrue(address, (self.directory / "cluster.log").read_text())
        begun = time.monotonic()
        assize(
            self.suite, "submit", "--on", "ray", "--shards", "20", "--cpus", "1", "--address", address, "--python", PYTHON, env=environment()
        )
        submission = next((self.suite / ".assize/submissions").iterdir())
        wait_until(lambda: len(list((submission / "shards").glob("*/manifest.json"))) >= 3, 120, "shards come back")
        self.cluster.stdin.write("remove\n")
        self.cluster.stdin.flush()
        self.assertEqual(self.cluster.stdout.readline().strip(), "removed")

        def is_over():
            status = json.loads(assize(self.suite, "submit", "status", "--json", expect=(0, 5)).stdout)
            return status["running"] == 0

        wait_until(is_over, 300, "the driver ends")
        log = (submission / "logs/driver.log").read_text()
        print(f"20 shards in {time.monotonic() - begun:.1f} s; the driver's last words: {log.splitlines()[-1]}")
        self.assertEqual(files_with_secret(self.directory, self.logs), [submission / "environment"])
        assize(self.suite, "submit", "collect")
        self.assertEqual(files_with_secret(self.directory, self.logs), [])
        self.check_merged(submission / "merged")

    def test_rounds_go_on_until_everything_is_decided_or_looked_at(self):
        (self.suite / "assize.yaml").write_text(ROUNDS.format(latency_ms=20))
        address = self.start_cluster()
        assize(
            self.suite, "submit", "--on", "ray", "--shards", "4", "--cpus", "1", "--address", address, "--python", PYTHON, "--wait", env=environment()
        )
        submission = next((self.suite / ".assize/submissions").iterdir())
        self.check_rounds(submission / "merged")
        self.assertEqual(files_with_secret(self.directory, self.logs), [])

    def test_cancel_ends_the_driver_and_its_tasks(self):
        address = self.start_cluster()
        assize(
            self.suite, "submit", "--on", "ray", "--shards", "20", "--cpus", "1", "--address", address, "--python", PYTHON, env=environment()
        )
        submission = next((self.suite / ".assize/submissions").iterdir())
        wait_until(lambda: any((submission / "shards").glob("*/manifest.json")), 120, "a shard comes back")
        assize(self.suite, "submit", "cancel")
        self.assertFalse((submission / "environment").exists())
        wait_until(lambda: not self.shards_running(), 60, "no shard is left")

    def shards_running(self):
        listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
        return [line for line in listed.splitlines() if str(self.suite) in line and "--shard" in line]


if __name__ == "__main__":
    unittest.main(verbosity=2)
