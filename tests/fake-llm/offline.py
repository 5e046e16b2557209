#!/usr/bin/env python3
"""offline.py [fake_llm options] -- COMMAND...: a command with a scripted LLM on 127.0.0.1:8099 and no other network.

Meant to be started by `unshare -rn`, in a network namespace of its own: brings the loopback device up, starts the LLM,
runs the command and ends with its exit code.
"""
import fcntl, os, socket, struct, subprocess, sys, tempfile, time

SIOCSIFFLAGS, IFF_UP = 0x8914, 1


def bring_loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))


def main():
    options, command = sys.argv[1:sys.argv.index("--")], sys.argv[sys.argv.index("--") + 1:]
    bring_loopback_up()
    ready = os.path.join(tempfile.mkdtemp(), "ready")
    fake = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fake_llm.py")
    llm = subprocess.Popen([sys.executable, fake, "--ready-file", ready, *options], stderr=subprocess.DEVNULL)
    try:
        while not os.path.exists(ready):
            if llm.poll() is not None:
                sys.exit("the scripted LLM did not start")
            time.sleep(0.02)
        sys.exit(subprocess.call(command))
    finally:
        llm.kill()


if __name__ == "__main__":
    main()
