// Package browser has only tests. They open the page of the lens in a Chromium, and use the page as a
// person does. They compare what the page shows with what is true on a control plane of their own.
// Without a Chromium, no test is run.
package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"k8s.io/client-go/kubernetes"

	"example.com/sample-controller/internal/testing/cluster"
	"example.com/sample-controller/internal/testing/process"
	"example.com/sample-controller/internal/testing/setting"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
)

const (
	root           = "../../"
	namespace      = "lens"                           // where the buttons of the page work
	controllerPath = "./.local/bin/sample-controller" // from the root, where the lens runs
)

// patience is how long to wait for an expected change.
var patience = 3 * setting.Patience()

var (
	controlPlane *cluster.Cluster
	kubeClient   kubernetes.Interface
	fooClient    clientset.Interface
	noBrowser    error           // why no test is run
	browser      context.Context // of chromedp
	sharedLens   *lens
	shared       *page  // shows the controller
	metricsAt    string // where the controller serves its metrics
)

func TestMain(m *testing.M) {
	path, err := findChromium()
	if noBrowser = err; err != nil || !setting.All() {
		os.Exit(m.Run())
	}
	cluster.Main(root, root+"artifacts/examples/crd.yaml", func(c *cluster.Cluster) (code int, err error) {
		controlPlane, kubeClient, fooClient = c, c.Kube, clientset.NewForConfigOrDie(c.Config)
		return runTests(m, path)
	})
}

// findChromium returns the path of a Chromium, or of a Chrome.
func findChromium() (string, error) {
	for _, name := range []string{
		"chromium", "chromium-browser", "google-chrome",
		"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
	} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("there is no Chromium")
}

// needsBrowser skips t if there is no browser.
func needsBrowser(t *testing.T) {
	t.Helper()
	setting.Long(t)
	if noBrowser != nil {
		t.Skipf("nothing is shown: %v", noBrowser)
	}
}

// runTests starts what all tests share, runs the tests, and stops it.
func runTests(m *testing.M, browserPath string) (code int, err error) {
	build := exec.Command("go", "-C", "lens", "build", "-o", filepath.Join(controlPlane.Dir, "lens"), ".")
	build.Dir = root
	if output, err := build.CombinedOutput(); err != nil {
		return 1, fmt.Errorf("building the lens: %w: %s", err, output)
	}
	allocator, end := chromedp.NewExecAllocator(context.Background(), append(
		chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(browserPath))...)
	defer end()
	browser, end = chromedp.NewContext(allocator)
	defer end()
	if err := chromedp.Do(browser); err != nil {
		return 1, fmt.Errorf("starting Chromium: %w", err)
	}
	if metricsAt, err = process.FreeAddress(); err != nil {
		return 1, err
	}
	sharedLens, err = startLens("-program=.", "--", controllerPath, "-v=5", "-health-probe-bind-address=0",
		"-metrics-bind-address="+metricsAt)
	if err != nil {
		return 1, err
	}
	defer func() { _ = sharedLens.Stop() }()
	if shared, err = sharedLens.open(); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// lens is a running lens.
type lens struct {
	*process.Process
	url string
}

var address = regexp.MustCompile(`The lens is at (http://\S+)`)

func startLens(args ...string) (*lens, error) {
	command := exec.Command(filepath.Join(controlPlane.Dir, "lens"), args...)
	command.Dir = root
	started, err := process.Start(command, controlPlane.Kubeconfig())
	if err != nil {
		return nil, err
	}
	l := &lens{Process: started}
	err = waitUntil(func() error {
		match := address.FindStringSubmatch(l.Output())
		if match == nil {
			return fmt.Errorf("the lens has not said where it is: %s", l.Output())
		}
		l.url = match[1]
		return nil
	})
	return l, err
}

// waitUntil calls check until it returns nil. When patience ends, it returns the error of check.
func waitUntil(check func() error) error {
	return cluster.WaitUntil(patience, 50*time.Millisecond, check)
}
