# The image holds the program, certificate authorities, time zones, a directory for temporary files, and a user that is not
# root: nothing else, no shell.
#
# That is what "distroless static" images hold; building it here from scratch needs no image beyond the compiler's.
# To use such a base instead: docker build --build-arg BASE=<your distroless static image> .
#
# There is no HEALTHCHECK: what is healthy depends on the configuration's place, and Kubernetes asks /startupz and /livez.
# docker-compose.yml has one.
ARG GO_IMAGE=golang:1.26.8
ARG BASE=scratch

FROM ${GO_IMAGE} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=""
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /out/replicator ./cmd/replicator \
 && mkdir -p /out/etc/ssl/certs /out/data /out/tmp /out/usr/share \
 && cp /etc/ssl/certs/ca-certificates.crt /out/etc/ssl/certs/ \
 && cp "$(go env GOROOT)/lib/time/zoneinfo.zip" /out/usr/share/ \
 && echo 'nonroot:x:65532:65532:nonroot:/data:/sbin/nologin' > /out/etc/passwd \
 && echo 'nonroot:x:65532:' > /out/etc/group

# docker build --target bulk: launcher and workers of replicator-bulk (docs/bulk.md). /opt/beam/boot is Beam's program that
# starts workers; an engine with --environment_type=PROCESS finds it in an image of task managers that copies it from here.
FROM build AS build-bulk
ARG VERSION=""
RUN cd bulk && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /out/replicator-bulk ./cmd/replicator-bulk \
 && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o /out/opt/beam/boot github.com/apache/beam/sdks/v2/go/container

FROM ${BASE} AS bulk
ARG VERSION=""
ARG REVISION=""
LABEL org.opencontainers.image.title="Tailrace replicator-bulk" \
      org.opencontainers.image.description="Copies and compares large tables on Apache Beam" \
      org.opencontainers.image.source="https://github.com/tailrace-cdc/replicator" \
      org.opencontainers.image.documentation="https://github.com/tailrace-cdc/replicator/blob/main/docs/bulk.md" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build-bulk --chown=65532:65532 /out/tmp /tmp
COPY --from=build-bulk /out/etc /etc
COPY --from=build-bulk /out/opt /opt
COPY --from=build-bulk /out/replicator-bulk /replicator-bulk
USER 65532:65532
WORKDIR /tmp
ENTRYPOINT ["/replicator-bulk"]

FROM ${BASE}
ARG VERSION=""
ARG REVISION=""
LABEL org.opencontainers.image.title="Tailrace replicator" \
      org.opencontainers.image.description="Streams Amazon DynamoDB tables into Google Bigtable" \
      org.opencontainers.image.source="https://github.com/tailrace-cdc/replicator" \
      org.opencontainers.image.documentation="https://github.com/tailrace-cdc/replicator/blob/main/README.md" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build --chown=65532:65532 /out/data /data
# For a writable root file system. With a read-only one mount a tmpfs or an emptyDir here, as the chart and compose do.
COPY --from=build --chown=65532:65532 /out/tmp /tmp
COPY --from=build /out/etc /etc
COPY --from=build /out/usr/share/zoneinfo.zip /usr/share/zoneinfo.zip
COPY --from=build /out/replicator /replicator
ENV ZONEINFO=/usr/share/zoneinfo.zip
USER 65532:65532
WORKDIR /data
VOLUME /data
EXPOSE 9464
ENTRYPOINT ["/replicator"]
CMD ["run", "--config", "/etc/tailrace/tailrace.yaml"]
