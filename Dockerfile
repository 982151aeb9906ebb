# A static program in an empty image. Projects are mounted:
#
#   docker run --rm -v "$PWD:/work" -u "$(id -u):$(id -g)" -e OPENAI_API_KEY compeval run
#
# A `command` method needs its interpreter: COPY --from this image into one that has it.
FROM rust:1-alpine AS build
RUN apk add --no-cache musl-dev
WORKDIR /source
COPY . .
RUN cargo build --profile dist --locked --features object-stores

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /source/target/dist/compeval /usr/local/bin/compeval
ENV HOME=/tmp
WORKDIR /work
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/compeval"]
