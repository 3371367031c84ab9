# The controller's image: the program and the certificate authorities that AWS is
# reached with, and nothing else. `make image` builds and pushes it.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETOS TARGETARCH
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -ldflags '-s -w' -o /karpenter ./cmd/karpenter

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /karpenter /karpenter
USER 65532:65532
ENTRYPOINT ["/karpenter"]
