# It needs BuildKit, which `docker build` uses if the plugin buildx is installed. `make image` builds
# the same image without docker, and without the two images below: a release is made like that.
# Somebody may move their tags. To pin them, write NAME:TAG@DIGEST, with the digest that
# `docker buildx imagetools inspect NAME:TAG` prints.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETOS TARGETARCH
ARG VERSION=v0.1.0-dev
ARG COMMIT=unknown
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY *.go ./
COPY internal internal
COPY pkg pkg
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -ldflags "-s -w \
    -X k8s.io/component-base/version.gitVersion=$VERSION \
    -X k8s.io/component-base/version.gitCommit=$COMMIT" -o /sample-controller .

FROM gcr.io/distroless/static:nonroot
COPY --from=build /sample-controller /sample-controller
USER 65532:65532
ENTRYPOINT ["/sample-controller"]
