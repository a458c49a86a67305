// Command image builds the controller's container image without docker:
//
//	go -C hack run ./image -name example.com/sample-controller:v0.1.0 -o image.tar amd64 arm64
//
// An image is simple: a tar file with one static binary, some JSON about it, and a tar file around
// both. The same source, flags and version of Go give the same bytes.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

var (
	name    = flag.String("name", "sample-controller:latest", "`name` of the image, with a tag")
	ldflags = flag.String("ldflags", "", "`flags` for the linker, as for go build")
	version = flag.String("version", "", "`version` for the label")
	commit  = flag.String("commit", "", "git `commit` for the label")
	output  = flag.String("o", "image.tar", "`file` to write")
)

func main() {
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: image [flags] [architecture ...]")
		flag.PrintDefaults()
	}
	flag.Parse()
	architectures := flag.Args()
	if len(architectures) == 0 {
		architectures = []string{runtime.GOARCH}
	}
	err := os.Chdir("..") // from hack to the root of the repository
	if err == nil {
		err = run(architectures)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// run builds the controller for the architectures, and writes one image of all of them.
func run(architectures []string) error {
	temp, err := os.MkdirTemp("", "image")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	binaries := map[string][]byte{}
	for _, architecture := range architectures {
		binary := filepath.Join(temp, architecture)
		if err := build(architecture, binary); err != nil {
			return fmt.Errorf("building for %s: %w", architecture, err)
		}
		if binaries[architecture], err = os.ReadFile(binary); err != nil {
			return err
		}
	}
	labels := map[string]string{
		"org.opencontainers.image.title":    "sample-controller",
		"org.opencontainers.image.licenses": "Apache-2.0",
		"org.opencontainers.image.version":  *version,
		"org.opencontainers.image.revision": *commit,
	}
	var archive bytes.Buffer
	if err := writeArchive(&archive, *name, labels, architectures, binaries); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(*output), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(*output, archive.Bytes(), 0o644); err != nil {
		return err
	}
	fmt.Printf("%s is in %s\n", *name, *output)
	return nil
}

// build builds the controller in the current folder, the root of the repository: without C and so
// static, without the paths of this machine, and without symbols that only a debugger reads. The
// first build takes a while, because no other command uses these flags.
func build(architecture, output string) error {
	command := exec.Command("hack/compile", "--for", "linux/"+architecture,
		"the controller for linux/"+architecture, output, "-trimpath", "-ldflags", "-s -w "+*ldflags, "--", ".")
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	command.Stderr = os.Stderr
	return command.Run()
}
