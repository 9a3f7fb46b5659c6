# The image that Kestra's Docker task runner starts.
#
#   docker build --target prebuilt DIR    takes a binary that is already built: DIR/lancedb-guard
#   docker build .                        compiles it, object stores included
#
# `prebuilt` stands before the compile stage: the classic builder builds every stage up to its
# target in order, and so never needs the Rust image for it.
ARG DEBIAN_IMAGE=debian:bookworm-slim
ARG RUST_IMAGE=rust:1.95-slim-bookworm

FROM ${DEBIAN_IMAGE} AS base
# Object stores are reached by TLS. A base that has the certificates already needs no network.
RUN test -s /etc/ssl/certs/ca-certificates.crt \
    || { apt-get update \
         && apt-get install --yes --no-install-recommends ca-certificates \
         && rm -rf /var/lib/apt/lists/*; }
ARG VERSION=dev
LABEL org.opencontainers.image.title="lancedb-guard" \
      org.opencontainers.image.description="Keeps LanceDB vector tables healthy: audits, compacts and verifies one table per run, for Kestra flows." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}"
# No USER: Kestra's working directory belongs to root. The binary itself runs as any user, and
# with a root file system that is read-only.
ENTRYPOINT ["lancedb-guard"]

FROM base AS prebuilt
COPY lancedb-guard /usr/local/bin/lancedb-guard

FROM ${RUST_IMAGE} AS compile
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev protobuf-compiler libprotobuf-dev
WORKDIR /build
# The dependencies first, with empty sources, so that a change of the code compiles only itself.
COPY Cargo.toml Cargo.lock build.rs ./
COPY xtask/Cargo.toml xtask/
RUN mkdir src xtask/src tests tests/it \
    && echo 'fn main() {}' | tee src/main.rs xtask/src/main.rs tests/it/main.rs \
    && touch src/lib.rs \
    && cargo build --release --locked --features object-stores --package lancedb-guard
COPY src src
COPY schemas schemas
RUN touch src/main.rs src/lib.rs \
    && cargo build --release --locked --features object-stores --package lancedb-guard

FROM base
COPY --from=compile /build/target/release/lancedb-guard /usr/local/bin/lancedb-guard
