package apiserver

import (
	"flag"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/explore/apiserver"
	"example.com/sample-controller/internal/testing/cluster"
)

const root = "../../"

var (
	sequences = flag.Int("sequences", 200, "number of random sequences of requests")
	seed      = flag.Uint64("seed", uint64(time.Now().UnixNano()), "seed of the random sequences")

	realServer *http.Client
	realHost   string
	crds       []*apiserver.CRD
)

func TestMain(m *testing.M) {
	flag.Parse()
	cluster.Main(root, "apiserver", func(controlPlane *cluster.Cluster) (code int, err error) {
		if crds, err = apiserver.ReadCRDs(root + "artifacts/examples/crd.yaml"); err != nil {
			return 1, err
		}
		for _, component := range []string{"kube-controller-manager", "kube-scheduler", "kwok-controller"} {
			if err := controlPlane.Kill(component); err != nil {
				return 1, err
			}
		}
		configMaps = controlPlane.Kube.CoreV1().ConfigMaps(metav1.NamespaceDefault)
		foos = controlPlane.Foos.SamplecontrollerV1alpha1().Foos(metav1.NamespaceDefault)
		config, err := controlPlane.Config()
		if err != nil {
			return 1, err
		}
		config.Timeout = 0
		realHost = config.Host
		if realServer, err = rest.HTTPClientFor(config); err != nil {
			return 1, err
		}
		return m.Run(), nil
	})
}
