package apiserver

import (
	"flag"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/explore/apiserver"
	"example.com/sample-controller/internal/testing/cluster"
	"example.com/sample-controller/internal/testing/setting"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
)

const (
	root = "../../"
	crd  = root + "artifacts/examples/crd.yaml"
)

var (
	sequences = flag.Int("sequences", 100, "number of random sequences of requests")
	seed      = flag.Uint64("seed", 1, "seed of the random sequences")

	realServer *http.Client
	realHost   string
	crds       []*apiserver.CRD
)

func TestMain(m *testing.M) {
	flag.Parse()
	if !setting.All() {
		_ = flag.Set("test.run", "^$") // all of it is long; go test says that no tests were run
		os.Exit(m.Run())
	}
	cluster.Main(root, crd, func(controlPlane *cluster.Cluster) (code int, err error) {
		if crds, err = apiserver.ReadCRDs(crd); err != nil {
			return 1, err
		}
		for _, component := range []string{"kube-controller-manager", "kube-scheduler", "kwok-controller"} {
			if err := controlPlane.Kill(component); err != nil {
				return 1, err
			}
		}
		configMaps = controlPlane.Kube.CoreV1().ConfigMaps(metav1.NamespaceDefault)
		config := rest.CopyConfig(controlPlane.Config)
		foos = clientset.NewForConfigOrDie(config).SamplecontrollerV1alpha1().Foos(metav1.NamespaceDefault)
		config.Timeout = 0
		realHost = config.Host
		if realServer, err = rest.HTTPClientFor(config); err != nil {
			return 1, err
		}
		return m.Run(), nil
	})
}

// What is believed to be right raises no alarm: Kubernetes' own controller of ReplicaSets, which is
// the one of explore/board that runs with each change.
func TestReplicaSetsOfTheBoard(t *testing.T) {
	command := exec.Command("go", "test", "-count=1", "-timeout=30m", "./replicaset",
		"-explore.budget=0")
	command.Dir = filepath.Join(root, "explore/board")
	command.Env = append(os.Environ(), "GOWORK=off")
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, output)
	}
}
