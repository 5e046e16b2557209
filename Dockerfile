# assize in a small image: make packages && docker build --tag assize . && docker run --rm -v "$PWD:/work" assize run examples/quickstart
# The program is linked statically and needs nothing else; the base brings a shell, and git and certificates for agents and checks beside it.
# An agent that needs more brings its own base: docker build --build-arg BASE=node:22-slim …
ARG BASE=debian:bookworm-slim
FROM ${BASE}
ARG TARGET=x86_64-unknown-linux-gnu
RUN if command -v git > /dev/null && [ -e /etc/ssl/certs/ca-certificates.crt ]; then exit 0; fi; \
    if command -v apt-get > /dev/null; then apt-get update && apt-get install -y --no-install-recommends ca-certificates git && rm -rf /var/lib/apt/lists/*; \
    elif command -v apk > /dev/null; then apk add --no-cache ca-certificates git; \
    else echo "the base has no package manager that is known: git and certificates are left out" >&2; fi
ADD target/packages/assize-${TARGET}.tar.gz /opt/
RUN mkdir -p /usr/local/bin && ln -s /opt/assize-${TARGET}/assize /usr/local/bin/assize
WORKDIR /work
ENTRYPOINT ["/usr/local/bin/assize"]
