// Package clientconfig finds the cluster that kubectl would talk to.
package clientconfig

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// Hint says what to do if no cluster is configured, or if it does not answer.
func Hint() string {
	if _, err := rest.InClusterConfig(); err == nil {
		return "this process runs in a Pod: see whether the API server is up, and whether a " +
			"NetworkPolicy keeps the Pod from it"
	}
	return "start a local cluster with 'make cluster' and see 'make kubeconfig', or set KUBECONFIG"
}

// Load returns how clients reach the cluster. It reads the file kubeconfig. If that is "", it reads
// $KUBECONFIG, ~/.kube/config or, in a Pod, the ServiceAccount. It makes no request. It logs the
// address of the server, so that you notice a wrong one at once.
//
// The clients have no rate limit (QPS is -1). The default of client-go, 5 requests a second, is
// older than API Priority and Fairness, by which API servers limit requests themselves.
func Load(kubeconfig string) (*rest.Config, error) {
	config, _, err := LoadWithNamespace(kubeconfig)
	return config, err
}

// LoadWithNamespace also returns the namespace of the kubeconfig's context. If that has none, it
// returns the Pod's namespace in a Pod, and "default" elsewhere.
func LoadWithNamespace(kubeconfig string) (config *rest.Config, namespace string, err error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil)
	if config, err = loader.ClientConfig(); err == nil {
		namespace, _, err = loader.Namespace()
	}
	if clientcmd.IsEmptyConfig(err) {
		return nil, "", fmt.Errorf("no cluster is configured; %s", Hint())
	}
	if err != nil {
		return nil, "", fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.QPS = -1
	klog.Background().Info("Connecting", "server", config.Host)
	return config, namespace, nil
}
