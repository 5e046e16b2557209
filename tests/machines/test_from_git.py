"""`assize init --from-git` on three small commits of this repository: their tests are built and run before and after."""

import json
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from support import ASSIZE, REPOSITORY, TARGET

# A commit, the package that its tests are of, and its task.
COMMITS = [
    ("91760cb186", "assize-stats", "report-both-the-last-look-and-all-looks-of-a-con"),
    ("8eb4506199", "assize-stats", "carry-options-in-structs-and-draw-sign-flips-per"),
    ("b793d02879", "assize-report", "call-active-tokens-active-since-the-table-shows"),
]


def has_history():
    known = subprocess.run(["git", "cat-file", "-e", f"{COMMITS[0][0]}~1"], cwd=REPOSITORY, stderr=subprocess.DEVNULL)
    return known.returncode == 0


@unittest.skipUnless(has_history(), "the history of this repository is not here")
class FromGit(unittest.TestCase):
    def test_three_commits_of_this_repository_are_tasks(self):
        directory = Path(tempfile.mkdtemp(prefix="assize-from-git-"))
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        for commit, package, task in COMMITS:
            with self.subTest(commit):
                suite = directory / commit
                # Dependencies are built once. Cargo would take what it built of one checkout for the other's, unless that is newer.
                test = f"find crates -name '*.rs' -exec touch {{}} + && CARGO_TARGET_DIR={TARGET} cargo test --locked -q -p {package} --tests"
                arguments = ["init", suite, "--from-git", f"{commit}~1..{commit}", "--test", test, "--timeout", "1200000", "--minutes", "60"]
                made = subprocess.run([ASSIZE, *arguments], cwd=REPOSITORY, capture_output=True, text=True)
                self.assertEqual(made.returncode, 0, made.stderr)
                [decision] = [json.loads(line) for line in (suite / "from-git.jsonl").read_text().splitlines()]
                self.assertEqual(decision["task"], task)
                self.assertEqual(decision["afterExit"], 0)
                self.assertNotIn(decision["beforeExit"], (None, 0, 126, 127))
                checked = subprocess.run([ASSIZE, "check", suite], cwd=REPOSITORY, capture_output=True, text=True)
                self.assertEqual(checked.returncode, 0, checked.stderr)
                self.assertIn("1 scenario in 2 modes", checked.stdout)


if __name__ == "__main__":
    unittest.main()
