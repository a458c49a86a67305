package hack

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var release = flag.Bool("release", false,
	"make a release and install it on the cluster of KUBECONFIG, with the programs in .local/bin")

const (
	releaseVersion = "v1.2.3-rc.1"
	releaseImage   = "registry.example:5000/acme/controller"
)

func TestReleaseRefusesBadNamesBeforeItWrites(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "release")
	for _, test := range []struct{ version, image, want string }{
		{"", releaseImage, "write one like v1.2.3"},
		{"1.2.3", releaseImage, "write one like v1.2.3"},
		{"v1.2", releaseImage, "write one like v1.2.3"},
		{"v1.02.3", releaseImage, "write one like v1.2.3"},
		{"v1.2.3+build", releaseImage, "write one like v1.2.3"},
		{"v1.2.3 -rc", releaseImage, "write one like v1.2.3"},
		{releaseVersion, "controller", "like ghcr.io/acme/controller"},
		{releaseVersion, "ghcr.io/Acme/controller", "like ghcr.io/acme/controller"},
		{releaseVersion, "ghcr.io/acme/controller:v1", "like ghcr.io/acme/controller"},
	} {
		_, problem, err := script(t, "", "hack/release", test.version, test.image, folder)
		if err == nil || !strings.Contains(problem, test.want) {
			t.Errorf("%q, %q: got %v, %q; want an error that says %q", test.version, test.image, err,
				problem, test.want)
		}
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("got %v, want no folder", err)
	}
}

func TestRelease(t *testing.T) {
	if !*release {
		t.Skip("needs -release, and a control plane")
	}
	one, other := t.TempDir(), t.TempDir()
	for _, folder := range []string{one, other} {
		must(t, "hack/release", releaseVersion, releaseImage, folder)
	}
	files := []string{"checksums.txt", "crd.yaml", "image.tar", "install.yaml", "sbom.cdx.json"}
	for _, file := range files {
		if !bytes.Equal(read(t, one, file), read(t, other, file)) {
			t.Errorf("%s: a second run wrote something else", file)
		}
	}
	if entries, err := os.ReadDir(one); err != nil || len(entries) != len(files) {
		t.Errorf("got %v, %v; want %q", entries, err, files)
	}
	var sums string
	for _, file := range files[1:] {
		sums += fmt.Sprintf("%x  %s\n", sha256.Sum256(read(t, one, file)), file)
	}
	if got := string(read(t, one, "checksums.txt")); got != sums {
		t.Errorf("got checksums\n%swant\n%s", got, sums)
	}
	layout := t.TempDir()
	must(t, "tar", "-xf", filepath.Join(one, "image.tar"), "-C", layout)
	t.Run("the SBOM lists what is in the binaries", func(t *testing.T) { compareSBOM(t, one, layout) })
	t.Run("the files are the kustomization", func(t *testing.T) { compareInstall(t, one, layout) })
	t.Run("the controller comes and goes without its Foos", func(t *testing.T) { install(t, one) })
}

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// descriptors are what an index and a manifest have, in the layout of an OCI image.
type descriptors struct {
	Manifests, Layers []struct{ Digest string }
}

func readDescriptors(t *testing.T, path ...string) (value descriptors) {
	t.Helper()
	if err := json.Unmarshal(read(t, path...), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func blob(digest string) string { return "blobs/" + strings.Replace(digest, ":", "/", 1) }

// compareSBOM compares the SBOM with what go says of the binary for each platform.
func compareSBOM(t *testing.T, folder, layout string) {
	index := blob(readDescriptors(t, layout, "index.json").Manifests[0].Digest)
	manifests := readDescriptors(t, layout, index).Manifests
	if len(manifests) != 2 {
		t.Fatalf("the image is for %d platforms, want 2", len(manifests))
	}
	var want []string
	for _, manifest := range manifests {
		layers := readDescriptors(t, layout, blob(manifest.Digest)).Layers
		binary := t.TempDir()
		must(t, "tar", "-xzf", filepath.Join(layout, blob(layers[0].Digest)), "-C", binary)
		want = append(want, modules(t, filepath.Join(binary, "sample-controller"))...)
	}
	var sbom struct {
		Components []struct{ Name, Version string }
	}
	if err := json.Unmarshal(read(t, folder, "sbom.cdx.json"), &sbom); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, component := range sbom.Components {
		got = append(got, component.Name+" "+component.Version)
	}
	slices.Sort(want)
	slices.Sort(got) // the list is in the order of the PURLs
	if want = slices.Compact(want); !slices.Equal(got, want) || len(want) < 10 {
		t.Errorf("the SBOM has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// modules returns the modules in a binary, and the standard library, each with its version.
func modules(t *testing.T, binary string) (found []string) {
	t.Helper()
	first, rest, _ := strings.Cut(must(t, "go", "version", "-m", binary), "\n")
	_, version, _ := strings.Cut(first, ": go")
	found = append(found, "stdlib "+version)
	for line := range strings.Lines(rest) {
		switch fields := strings.Fields(line); fields[0] {
		case "dep":
			found = append(found, fields[1]+" "+fields[2])
		case "=>": // in place of the one before
			found[len(found)-1] = fields[1] + " " + fields[2]
		}
	}
	return found
}

func compareInstall(t *testing.T, folder, layout string) {
	digest := readDescriptors(t, layout, "index.json").Manifests[0].Digest
	image := regexp.MustCompile(`(?m)^ +image: (.*)$`)
	want := must(t, ".local/bin/kubectl", "kustomize", "artifacts/deploy")
	found := image.FindAllStringSubmatch(want, -1)
	if len(found) != 1 {
		t.Fatalf("the kustomization has the images %q, want one", found)
	}
	want = strings.Replace(want, found[0][1], releaseImage+":"+releaseVersion+"@"+digest, 1)
	objects := strings.Split(want, "---\n")
	at := slices.IndexFunc(objects, func(object string) bool {
		return strings.Contains(object, "\nkind: CustomResourceDefinition\n")
	})
	crd := "---\n" + objects[at]
	objects = slices.Delete(objects, at, at+1)
	for file, want := range map[string]string{
		"crd.yaml": crd, "install.yaml": strings.Join(objects, "---\n"),
	} {
		if got := string(read(t, folder, file)); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", file, got, want)
		}
	}
}

// install applies the files, and deletes what the second one has. The Pods become ready, but no
// container runs: the node is simulated.
func install(t *testing.T, folder string) {
	t.Setenv("KUBECACHEDIR", t.TempDir())
	kubectl := func(args ...string) { must(t, ".local/bin/kubectl", args...) }
	crd := "--filename=" + filepath.Join(folder, "crd.yaml")
	file := "--filename=" + filepath.Join(folder, "install.yaml")
	foo := "--filename=artifacts/examples/example-foo.yaml"
	defer kubectl("delete", foo, file, "--ignore-not-found")
	kubectl("apply", crd, file)
	kubectl("-n", "sample-controller", "rollout", "status",
		"deployment/sample-controller", "--timeout="+cmp.Or(os.Getenv("PATIENCE"), "3m"))
	kubectl("create", foo)
	kubectl("delete", file)
	kubectl("get", foo) // deleting the controller has not deleted it
}

func TestReleaseIsRedIfNobodyKnowsWhetherItIsVulnerable(t *testing.T) {
	if !*release {
		t.Skip("needs -release")
	}
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1") // where nobody answers
	said := regexp.MustCompile(`^vulnerabilities: not checked, because ` +
		`(govulncheck cannot be installed|the database cannot be reached: https://vuln\.go\.dev)\n$`)
	for _, required := range []bool{false, true} {
		t.Setenv("REQUIRED", fmt.Sprint(required))
		stdout, stderr, err := script(t, "", "hack/vulnerabilities")
		if (err != nil) != required || !said.MatchString(stdout) {
			t.Errorf("REQUIRED=%v: got %v, %s%s", required, err, stdout, stderr)
		}
	}
}
