# assize in a small image: make packages && docker build --tag assize . && docker run --rm -v "$PWD:/work" assize run examples/quickstart
# The program is linked statically and needs nothing else; the base brings a shell, git and certificates for agents and checks beside it.
FROM debian:bookworm-slim
ARG TARGET=x86_64-unknown-linux-gnu
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates git && rm -rf /var/lib/apt/lists/*
ADD target/packages/assize-${TARGET}.tar.gz /opt/
RUN ln -s /opt/assize-${TARGET}/assize /usr/local/bin/assize
WORKDIR /work
ENTRYPOINT ["assize"]
