#!/usr/bin/env python3
"""offline.py [options] [fake_llm options] -- COMMAND...: a command with a scripted LLM on 127.0.0.1:8099 and no other network.

Meant to be started by `unshare -rnm`, in namespaces of its own: brings the loopback device up, starts the LLM and a name
server that knows no name, runs the command and ends with its exit code. What the command tried to reach is written to
`--names`, processes that outlived it to `--left`; those are ended. A command that takes longer than `--limit` is ended too.
"""
import argparse, fcntl, os, signal, socket, struct, subprocess, sys, tempfile, threading, time

SIOCSIFFLAGS, IFF_UP = 0x8914, 1
NO_SUCH_NAME = 0x8183
# How long processes may take to disappear after the command.
PATIENCE_S = 3


def bring_loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))


def become_name_server(directory, log):
    """Every program here asks us; whoever wants to talk to somebody begins by asking for an address."""
    configuration = os.path.join(directory, "resolv.conf")
    with open(configuration, "w") as file:
        file.write("nameserver 127.0.0.1\noptions attempts:1 timeout:2\n")
    subprocess.run(["mount", "--bind", configuration, "/etc/resolv.conf"], check=True)
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 53))
    threading.Thread(target=answer_names, args=(server, log), daemon=True).start()


def answer_names(server, log):
    while True:
        query, client = server.recvfrom(4096)
        labels, at = [], 12
        while at < len(query) and query[at]:
            labels.append(query[at + 1:at + 1 + query[at]].decode("latin1"))
            at += 1 + query[at]
        with open(log, "a") as file:
            file.write(".".join(labels) + "\n")
        head = query[:2] + struct.pack(">HHHHH", NO_SUCH_NAME, 1, 0, 0, 0)
        server.sendto(head + query[12:at + 5], client)


def processes():
    """Everybody in this network namespace but ourselves, by id."""
    here, found = os.readlink("/proc/self/ns/net"), {}
    for name in os.listdir("/proc"):
        try:
            if not name.isdigit() or int(name) == os.getpid() or os.readlink(f"/proc/{name}/ns/net") != here:
                continue
            with open(f"/proc/{name}/cmdline", "rb") as file:
                line = file.read().replace(b"\0", b" ").decode("utf-8", "replace").strip()
        except OSError:
            continue
        if line:  # The dead have none.
            found[int(name)] = line
    return found


def left_behind(known):
    until = time.monotonic() + PATIENCE_S
    while True:
        left = {pid: line for pid, line in processes().items() if pid != known}
        if not left or time.monotonic() > until:
            return left
        time.sleep(0.02)


def main():
    split = sys.argv.index("--")
    parser = argparse.ArgumentParser()
    parser.add_argument("--names", default=os.devnull)
    parser.add_argument("--left", default=os.devnull)
    parser.add_argument("--limit", type=float)
    ours, options = parser.parse_known_args(sys.argv[1:split])
    bring_loopback_up()
    directory = tempfile.mkdtemp()
    become_name_server(directory, ours.names)
    ready = os.path.join(directory, "ready")
    fake = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fake_llm.py")
    llm = subprocess.Popen([sys.executable, fake, "--ready-file", ready, *options], stderr=subprocess.DEVNULL)
    try:
        while not os.path.exists(ready):
            if llm.poll() is not None:
                sys.exit("the scripted LLM did not start")
            time.sleep(0.02)
        sys.exit(run(sys.argv[split + 1:], ours, llm.pid))
    finally:
        llm.kill()


def run(command, ours, llm):
    child = subprocess.Popen(command)
    try:
        code = child.wait(ours.limit)
    except subprocess.TimeoutExpired:
        child.kill()
        print(f"not over after {ours.limit} s: {command}", file=sys.stderr)
        code = 124
    left = left_behind(llm)
    with open(ours.left, "a") as file:
        file.writelines(line + "\n" for line in left.values())
    for pid in left:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return code


if __name__ == "__main__":
    main()
