package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	entrypoint = "/sample-controller"
	user       = "65532:65532" // "nonroot" in other images; runAsNonRoot can check only a number
)

// writeArchive writes an image of that name: an OCI image layout in a tar file, which "kind load
// image-archive", "ctr -n k8s.io image import", podman and skopeo read. For docker without
// containerd, the file also has the older format, for the first of the architectures.
func writeArchive(
	w io.Writer, name string, labels map[string]string,
	architectures []string, binaries map[string][]byte,
) error {
	folder, err := os.MkdirTemp("", "image")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	var docker tarball.Manifest
	for _, architecture := range architectures {
		image, err := newImage(architecture, labels, binaries[architecture])
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: "linux", Architecture: architecture}}})
		m, err := image.Manifest()
		if err != nil {
			return err
		}
		docker = append(docker, tarball.Descriptor{Config: blobPath(m.Config.Digest),
			RepoTags: []string{name}, Layers: []string{blobPath(m.Layers[0].Digest)}})
	}
	text, err := json.Marshal(docker[:1])
	if err != nil {
		return err
	}
	path, err := layout.Write(folder, empty.Index)
	if err == nil {
		err = path.AppendIndex(index, layout.WithAnnotations(map[string]string{
			"io.containerd.image.name":          name,
			"org.opencontainers.image.ref.name": name[strings.LastIndex(name, ":")+1:],
		}))
	}
	if err == nil {
		err = path.WriteFile("manifest.json", text, 0o644)
	}
	if err != nil {
		return err
	}
	return writeFolder(w, os.DirFS(folder))
}

func blobPath(digest v1.Hash) string { return "blobs/" + digest.Algorithm + "/" + digest.Hex }

// newImage returns the image for one architecture. Its one layer has only the binary: the certificates
// for the API server come with the ServiceAccount, and the controller calls nothing else.
func newImage(architecture string, labels map[string]string, binary []byte) (v1.Image, error) {
	var content bytes.Buffer
	archive := tar.NewWriter(&content)
	err := writeFile(archive, strings.TrimPrefix(entrypoint, "/"), 0o555, binary)
	if err := errors.Join(err, archive.Close()); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
	if err != nil {
		return nil, err
	}
	image := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	image, err = mutate.ConfigFile(mutate.ConfigMediaType(image, types.OCIConfigJSON), &v1.ConfigFile{
		OS: "linux", Architecture: architecture, RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{
			User: user, Entrypoint: []string{entrypoint}, WorkingDir: "/", Labels: labels,
		},
	})
	if err != nil {
		return nil, err
	}
	return mutate.AppendLayers(image, layer)
}

// writeFolder writes a tar file of what is in a folder.
func writeFolder(w io.Writer, folder fs.FS) error {
	archive := tar.NewWriter(w)
	err := fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(folder, name)
		if err != nil {
			return err
		}
		return writeFile(archive, name, 0o644, text)
	})
	return errors.Join(err, archive.Close())
}

// writeFile adds a file without a time and an owner, which would change the digest although the source
// is the same.
func writeFile(archive *tar.Writer, name string, mode int64, content []byte) error {
	header := &tar.Header{Name: name, Mode: mode, Size: int64(len(content)), Format: tar.FormatUSTAR}
	err := archive.WriteHeader(header)
	if err == nil {
		_, err = archive.Write(content)
	}
	return err
}
