package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	mediaTypeIndex    = "application/vnd.oci.image.index.v1+json"
	mediaTypeManifest = "application/vnd.oci.image.manifest.v1+json"
	mediaTypeConfig   = "application/vnd.oci.image.config.v1+json"
	mediaTypeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"

	entrypoint = "/sample-controller"
	user       = "65532:65532" // "nonroot" in other images; runAsNonRoot can check only a number
)

// A descriptor refers to a blob, which is stored under its digest.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Platform    *platform         `json:"platform,omitempty"`
}

type platform struct {
	OS           string `json:"os"`
	Architecture string `json:"architecture"`
}

// index lists the manifests of an image, one for each platform.
type index struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Manifests     []descriptor `json:"manifests"`
}

// manifest lists the parts of the image for one platform.
type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
}

// imageConfig says how to run the image.
type imageConfig struct {
	platform
	Config struct {
		User       string            `json:"User"`
		Entrypoint []string          `json:"Entrypoint"`
		WorkingDir string            `json:"WorkingDir"`
		Labels     map[string]string `json:"Labels"`
	} `json:"config"`
	RootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
}

// dockerManifest is what "docker load" reads if it does not know OCI archives.
type dockerManifest struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// archive writes a tar file of blobs and of JSON that refers to them. The first error sticks.
type archive struct {
	tar   *tar.Writer
	blobs map[string]bool
	err   error
}

func (a *archive) file(name string, mode int64, content []byte) {
	if a.err != nil {
		return
	}
	// No time and no owner, which would change the digest although the source is the same.
	header := &tar.Header{Name: name, Mode: mode, Size: int64(len(content)), Format: tar.FormatUSTAR}
	if a.err = a.tar.WriteHeader(header); a.err == nil {
		_, a.err = a.tar.Write(content)
	}
}

func (a *archive) blob(mediaType string, content []byte) descriptor {
	digest := digestOf(content)
	if !a.blobs[digest] {
		a.blobs[digest] = true
		a.file(blobPath(digest), 0o644, content)
	}
	return descriptor{MediaType: mediaType, Digest: digest, Size: len(content)}
}

func (a *archive) json(value any) []byte {
	text, err := json.Marshal(value)
	if a.err == nil {
		a.err = err
	}
	return text
}

func digestOf(content []byte) string {
	return fmt.Sprintf("sha256:%x", sha256.Sum256(content))
}

func blobPath(digest string) string {
	return "blobs/" + strings.Replace(digest, ":", "/", 1)
}

// writeArchive writes an image of that name: an OCI image layout in a tar file, which "kind load
// image-archive", "ctr -n k8s.io image import", podman and skopeo read. For docker without
// containerd, the file also has the older format, for the first of the architectures.
func writeArchive(
	w io.Writer, name string, labels map[string]string,
	architectures []string, binaries map[string][]byte,
) error {
	a := &archive{tar: tar.NewWriter(w), blobs: map[string]bool{}}
	image := index{SchemaVersion: 2, MediaType: mediaTypeIndex}
	var docker []dockerManifest
	for _, architecture := range architectures {
		m := a.image(platform{"linux", architecture}, labels, binaries[architecture])
		d := a.blob(mediaTypeManifest, a.json(m))
		d.Platform = &platform{"linux", architecture}
		image.Manifests = append(image.Manifests, d)
		docker = append(docker, dockerManifest{
			blobPath(m.Config.Digest), []string{name}, []string{blobPath(m.Layers[0].Digest)},
		})
	}
	root := a.blob(mediaTypeIndex, a.json(image))
	root.Annotations = map[string]string{
		"io.containerd.image.name":          name,
		"org.opencontainers.image.ref.name": name[strings.LastIndex(name, ":")+1:],
	}
	a.file("oci-layout", 0o644, []byte(`{"imageLayoutVersion":"1.0.0"}`))
	a.file("index.json", 0o644, a.json(index{2, mediaTypeIndex, []descriptor{root}}))
	a.file("manifest.json", 0o644, a.json(docker[:1]))
	if a.err != nil {
		return a.err
	}
	return a.tar.Close()
}

// image adds the image for one platform. Its one layer has only the binary: the certificates for
// the API server come with the ServiceAccount, and the controller calls nothing else.
func (a *archive) image(p platform, labels map[string]string, binary []byte) manifest {
	var content, compressed bytes.Buffer
	layer := &archive{tar: tar.NewWriter(&content)}
	layer.file(strings.TrimPrefix(entrypoint, "/"), 0o555, binary)
	if err := errors.Join(layer.err, layer.tar.Close()); a.err == nil {
		a.err = err
	}
	zip := gzip.NewWriter(&compressed)
	_, _ = zip.Write(content.Bytes()) // a bytes.Buffer returns no error
	_ = zip.Close()
	rootFS := a.blob(mediaTypeLayer, compressed.Bytes())

	config := imageConfig{platform: p}
	config.Config.User = user
	config.Config.Entrypoint = []string{entrypoint}
	config.Config.WorkingDir = "/"
	config.Config.Labels = labels
	config.RootFS.Type = "layers"
	config.RootFS.DiffIDs = []string{digestOf(content.Bytes())} // before compression
	return manifest{
		SchemaVersion: 2, MediaType: mediaTypeManifest,
		Config: a.blob(mediaTypeConfig, a.json(config)), Layers: []descriptor{rootFS},
	}
}
