package apiserver

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"example.com/sample-controller/explore/apiserver"
	"example.com/sample-controller/test/internal/cluster"
)

const root = "../../"

var (
	sequences = flag.Int("sequences", 200, "number of random sequences of requests")
	seed      = flag.Uint64("seed", uint64(time.Now().UnixNano()), "seed of the random sequences")

	realServer *http.Client
	realHost   string
	crds       []*apiextensionsv1.CustomResourceDefinition
)

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "apiserver:", err)
		code = 1
	}
	os.Exit(code)
}

// runTests runs the tests between the start and the end of the cluster.
func runTests(m *testing.M) (code int, err error) {
	if crds, err = apiserver.ReadCRDs(root + "artifacts/examples/crd.yaml"); err != nil {
		return 1, err
	}
	controlPlane, err := cluster.Start(root, "apiserver")
	if err != nil {
		return 1, err
	}
	defer controlPlane.Stop()
	if err := controlPlane.InstallCRD(); err != nil {
		return 1, err
	}
	for _, component := range []string{"kube-controller-manager", "kube-scheduler", "kwok-controller"} {
		pid, _, err := controlPlane.Process(component)
		if err == nil {
			err = syscall.Kill(pid, syscall.SIGKILL)
		}
		if err != nil {
			return 1, err
		}
	}
	config, err := controlPlane.Config()
	if err != nil {
		return 1, err
	}
	config.Timeout = 0
	if realServer, err = rest.HTTPClientFor(config); err != nil {
		return 1, err
	}
	realHost = config.Host
	return m.Run(), nil
}
