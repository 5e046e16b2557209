"""Slurm as Debian packs it: one controller and three slurmd on this machine, with their own munge, ports and directories."""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
import unittest
from pathlib import Path

from support import ROUNDS, MachineTest, assize, environment, files_with_secret, free_port, wait_until

PROGRAMS = ["slurmctld", "slurmd", "sbatch", "munged"]
MISSING = [name for name in PROGRAMS if not shutil.which(name, path="/usr/sbin:/usr/bin:" + os.environ.get("PATH", ""))]

CONFIGURATION = """\
ClusterName=assize
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
AuthType=auth/munge
AuthInfo=socket={base}/munge.socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation={base}/state
SlurmdSpoolDir={base}/spool-%n
SlurmctldPidFile={base}/slurmctld.pid
SlurmdPidFile={base}/slurmd-%n.pid
SlurmctldLogFile={base}/slurmctld.log
SlurmdLogFile={base}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
SchedulerParameters=requeue_delay=0
SlurmdParameters=config_overrides
ReturnToService=2
SlurmctldTimeout=10
SlurmdTimeout=10
KillWait=5
MinJobAge=300
JobRequeue=1
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class Slurm:
    """A cluster of three nodes with two processors each."""

    nodes = ["n1", "n2", "n3"]

    def __init__(self, base):
        self.base = base
        base.mkdir(parents=True)
        (base / "state").mkdir()
        self.host = socket.gethostname().split(".")[0]
        lines = [f"NodeName={node} NodeHostname={self.host} NodeAddr=127.0.0.1 Port={free_port()} CPUs=2 RealMemory=2000 State=UNKNOWN" for node in self.nodes]
        text = CONFIGURATION.format(host=self.host, port=free_port(), base=base, nodes="\n".join(lines))
        self.configuration = base / "slurm.conf"
        self.configuration.write_text(text)
        self.processes = {}
        self.env = {**environment(), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "SLURM_CONF": str(self.configuration)}

    def start(self):
        key = self.base / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        self.spawn(
            "munged", "--foreground", "--force", f"--socket={self.base}/munge.socket", f"--key-file={key}",
            f"--pid-file={self.base}/munged.pid", f"--log-file={self.base}/munged.log", f"--seed-file={self.base}/munged.seed",
        )
        wait_until((self.base / "munge.socket").exists, 20, "munged is there")
        self.start_controller("-c")
        for node in self.nodes:
            self.start_node(node)
        wait_until(lambda: self.sinfo().count("idle") == 3, 60, "three nodes are idle")

    def spawn(self, name, *arguments, label=None):
        # Nothing of the tests' environment: a secret that the scheduler's programs never had cannot be found in their files.
        plain = {"PATH": self.env["PATH"], "SLURM_CONF": self.env["SLURM_CONF"]}
        with open(self.base / f"{label or name}.out", "ab") as log:
            started = subprocess.Popen([name, *arguments], env=plain, stdout=log, stderr=log, start_new_session=True)
        self.processes[label or name] = started

    def start_controller(self, *flags):
        self.spawn("slurmctld", "-D", *flags)

    def start_node(self, node):
        self.spawn("slurmd", "-D", "-N", node, label=node)

    def kill(self, label):
        self.processes[label].kill()
        self.processes[label].wait()

    def call(self, *command):
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=60)
        return done.stdout + done.stderr

    def sinfo(self):
        return self.call("sinfo", "--noheader", "--Node", "--format=%N %t")

    def stop(self):
        self.call("scancel", "--user=root")
        time.sleep(1)
        for process in reversed(list(self.processes.values())):
            if process.poll() is None:
                process.terminate()
        for process in self.processes.values():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def steps_of(slurm):
    """The processes that hold batch scripts, by their title and their cluster's configuration."""
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                is_step = b"slurmstepd: [" in (path / "cmdline").read_bytes()
                if is_step and str(slurm.configuration).encode() in (path / "environ").read_bytes():
                    found.append(int(path.name))
            except OSError:
                continue
    return found


def processes_of(directory, word):
    """Processes that were started for this test, by their arguments."""
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                arguments = (path / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            text = b" ".join(arguments)
            if str(directory).encode() in text and word in text:
                found.append(int(path.name))
    return found


@unittest.skipIf(MISSING, f"not installed: {', '.join(MISSING)} (tests/machines/install.sh slurm)")
class SlurmTest(MachineTest):
    def setUp(self):
        super().setUp()
        self.slurm = Slurm(self.directory / "slurm")
        self.addCleanup(self.slurm.stop)
        self.slurm.start()

    def submission(self):
        return next((self.suite / ".assize/submissions").iterdir())

    def status(self):
        done = assize(self.suite, "submit", "status", "--json", env=self.slurm.env, expect=None)
        # The controller may be away for a moment.
        return json.loads(done.stdout) if done.stdout else None

    def is_over(self):
        status = self.status()
        return bool(status) and status["running"] + status["waiting"] == 0

    def test_an_array_survives_killed_nodes_steps_and_a_restarted_controller(self):
        assize(self.suite, "submit", "--on", "slurm", "--shards", "40", "--cpus", "1", "--memory", "100", env=self.slurm.env)
        submission = self.submission()
        wait_until(lambda: len(list((submission / "shards").iterdir())) >= 4, 60, "some shards run")

        # A node is lost: its slurmd with everything it runs.
        self.slurm.kill("n1")

        # Runs are killed under the scheduler's script, which starts them again.
        for pid in processes_of(self.directory, b"--shard")[:2]:
            os.kill(pid, signal.SIGKILL)

        # A step is killed with all it has: the scheduler must notice that the job is gone.
        wait_until(lambda: len(list((submission / "shards").iterdir())) >= 12, 120, "more shards run")
        victims = steps_of(self.slurm)[:1]
        self.assertTrue(victims, "a step was found")
        for pid in victims:
            os.kill(pid, signal.SIGKILL)

        # The controller is killed and restarted; the node comes back.
        self.slurm.kill("slurmctld")
        time.sleep(1)
        self.slurm.start_controller()
        time.sleep(2)
        self.slurm.start_node("n1")

        wait_until(self.is_over, 400, "the array ends")
        for _ in range(3):
            # Elements that the scheduler gave up are submitted again, exactly those.
            if not self.status()["open"]:
                break
            assize(self.suite, "submit", "retry", env=self.slurm.env)
            wait_until(self.is_over, 200, "the rest ends")
        self.assertEqual(self.status()["open"], [])

        secret_before = files_with_secret(self.directory)
        self.assertEqual(secret_before, [submission / "environment"])
        self.assertEqual((submission / "environment").stat().st_mode & 0o777, 0o600)
        shown = self.slurm.call("scontrol", "show", "job", "--details")
        self.assertNotIn("hunter2", shown)

        collected = assize(self.suite, "submit", "collect", env=self.slurm.env)
        print(collected.stderr)
        self.assertEqual(files_with_secret(self.directory), [])
        self.check_merged(submission / "merged")

    def test_a_shard_out_of_time_is_queued_again(self):
        (self.suite / "assize.yaml").write_text((self.suite / "assize.yaml").read_text().replace("latency_ms: 300", "latency_ms: 15000"))
        template = assize(self.suite, "submit", "template", "slurm").stdout
        # Slurm looks at time limits every half minute, by which time two of four trials are done.
        (self.directory / "soon.sh").write_text(template.replace("USR1@60", "USR1@55"))
        assize(
            self.suite, "submit", "--on", "slurm", "--shards", "1", "--cpus", "1", "--memory", "100", "--minutes", "1",
            "--template", self.directory / "soon.sh", "--", "-n", "1", "--scenario", "s0", "--scenario", "s1", env=self.slurm.env,
        )
        log = self.submission() / "logs" / "shard-1.log"
        wait_until(lambda: log.exists() and "start 2" in log.read_text(), 400, "it is started a second time")
        # Slurm waits two minutes before it starts a requeued job.
        wait_until(self.is_over, 800, "it ends")
        collected = assize(self.suite, "submit", "collect", env=self.slurm.env, expect=(0, 5))
        self.assertNotIn("more than once", collected.stderr)

    def test_rounds_go_on_until_everything_is_decided_or_looked_at(self):
        (self.suite / "assize.yaml").write_text(ROUNDS.format(latency_ms=20))
        assize(
            self.suite, "submit", "--on", "slurm", "--shards", "6", "--cpus", "1", "--memory", "100", "--at-once", "6", "--wait", env=self.slurm.env
        )
        self.check_rounds(self.submission() / "merged")
        self.assertEqual(files_with_secret(self.directory), [])

    def test_cancel_ends_the_array_and_removes_the_values(self):
        assize(self.suite, "submit", "--on", "slurm", "--shards", "10", "--cpus", "1", "--memory", "100", env=self.slurm.env)
        submission = self.submission()
        wait_until(lambda: any((submission / "shards").iterdir()), 60, "a shard runs")
        assize(self.suite, "submit", "cancel", env=self.slurm.env)
        self.assertFalse((submission / "environment").exists())
        wait_until(self.is_over, 60, "nothing waits or runs")
        wait_until(lambda: not processes_of(self.directory, b"--shard"), 60, "no process is left")


if __name__ == "__main__":
    unittest.main(verbosity=2)
