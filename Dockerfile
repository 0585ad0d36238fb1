# The image holds the program, certificate authorities, and a user that is not root: nothing else, no shell.
#
# That is what "distroless static" images hold; building it here from scratch needs no image beyond the compiler's.
# To use such a base instead: docker build --build-arg BASE=<your distroless static image> .
ARG GO_IMAGE=golang:1.26.8
ARG BASE=scratch

FROM ${GO_IMAGE} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=""
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /out/replicator ./cmd/replicator \
 && mkdir -p /out/etc/ssl/certs /out/data \
 && cp /etc/ssl/certs/ca-certificates.crt /out/etc/ssl/certs/ \
 && echo 'nonroot:x:65532:65532:nonroot:/data:/sbin/nologin' > /out/etc/passwd \
 && echo 'nonroot:x:65532:' > /out/etc/group

FROM ${BASE}
COPY --from=build --chown=65532:65532 /out/data /data
COPY --from=build /out/etc /etc
COPY --from=build /out/replicator /replicator
USER 65532:65532
WORKDIR /data
VOLUME /data
EXPOSE 9464
ENTRYPOINT ["/replicator"]
CMD ["run", "--config", "/etc/tailrace/tailrace.yaml"]
