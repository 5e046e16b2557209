"""Kubernetes: manifests read with the API's own types. No cluster was at hand: nothing here is submitted to one."""

import os
import subprocess
import unittest

from support import REPOSITORY, TARGET, MachineTest, assize

PACKAGE = REPOSITORY / "tests/machines/kubernetes"


class KubernetesTest(MachineTest):
    def check(self, *files, expect=0):
        command = ["cargo", "run", "--quiet", "--locked", "--manifest-path", PACKAGE / "Cargo.toml", "--", *files]
        env = {**os.environ, "CARGO_TARGET_DIR": str(TARGET)}
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_manifests_are_jobs_of_the_api(self):
        flags = ["submit", "--on", "kubernetes", "--image", "registry.example/suite:1", "--dry-run"]
        shared = assize(self.suite, *flags, "--shards", "40", "--claim", "results", "--at-once", "8").stdout
        store = assize(self.suite, *flags, "--shards", "7", "--results", "s3://bucket/prefix", "--secret", "mine").stdout
        self.assertNotIn("hunter2", shared + store)
        files = []
        for name, text in [("shared.yaml", shared), ("store.yaml", store)]:
            (self.directory / name).write_text(text)
            files.append(self.directory / name)
        said = self.check(PACKAGE / "job.yaml", *files)
        self.assertIn("a Job of 40 indexes", said)
        self.assertIn("a Job of 7 indexes", said)

    def test_a_key_that_the_api_does_not_know_is_found(self):
        text = (PACKAGE / "job.yaml").read_text().replace("backoffLimitPerIndex", "backoffLimitPerIndexx")
        (self.directory / "wrong.yaml").write_text(text)
        self.assertIn("backoffLimitPerIndexx", self.check(self.directory / "wrong.yaml", expect=1))


if __name__ == "__main__":
    unittest.main(verbosity=2)
