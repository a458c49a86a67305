//go:build !js

package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// cluster is the cluster that the program and kubectl talk to.
type cluster struct {
	config     *rest.Config
	kubeconfig *clientcmdapi.Config // with this cluster's context only
}

// findCluster returns the cluster that kubectl would talk to. It makes no request.
func findCluster() (*cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	kubeconfig, err := rules.Load()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	overrides := &clientcmd.ConfigOverrides{}
	config, err := clientcmd.NewDefaultClientConfig(*kubeconfig, overrides).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errors.New("no cluster is configured; " +
			"start a local cluster with 'make cluster' and see 'make kubeconfig', or set KUBECONFIG")
	}
	if err == nil {
		err = clientcmdapi.MinifyConfig(kubeconfig)
	}
	if err == nil {
		err = clientcmdapi.FlattenConfig(kubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.QPS = -1
	rest.AddUserAgent(config, "lens")
	return &cluster{config: config, kubeconfig: kubeconfig}, nil
}

// loopback reports whether the API server is on this machine. If something forwards the port, the
// cluster may be anywhere; but then somebody wanted that.
func (c *cluster) loopback() bool {
	server, err := url.Parse(c.config.Host)
	return err == nil && isLoopback(server.Hostname())
}

// connect makes the program use the proxy, until end is called.
func (s *session) connect() (end func(), err error) {
	kubeconfig := filepath.Join(s.folder, "program.yaml")
	s.program.env = []string{"KUBECONFIG=" + kubeconfig}
	address, end, err := s.serve(s.proxy)
	if err == nil {
		err = s.cluster.writeProxyConfig(kubeconfig, address)
	}
	return end, err
}

// writeProxyConfig writes a kubeconfig that leads to a proxy instead.
func (c *cluster) writeProxyConfig(file, proxy string) error {
	const name = "lens"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: proxy}
	config.Contexts[name] = &clientcmdapi.Context{
		Cluster:   name,
		Namespace: c.kubeconfig.Contexts[c.kubeconfig.CurrentContext].Namespace,
	}
	config.CurrentContext = name
	return clientcmd.WriteToFile(*config, file)
}

// cleanUp undoes what the lens has changed. It runs when the lens ends, even if that is killed.
const cleanUp = `
	if [ -s "$0/namespace" ]; then
		# A button may hold this Foo.
		kubectl -n "$(cat "$0/namespace")" patch foo/example-foo --type=merge -p '{"metadata":{"finalizers":null}}' 2>/dev/null
		kubectl delete namespace "$(cat "$0/namespace")" --timeout=2m
	fi
	rm -rf "$0"`

// makeFolder makes a folder for the files of one lens. From then on, kubectl works on the cluster,
// whatever becomes of the user's kubeconfig. undo runs cleanUp.
func (c *cluster) makeFolder(root string) (folder string, undo func(), err error) {
	parent := filepath.Join(root, ".local/lens")
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", nil, err
	}
	if folder, err = os.MkdirTemp(parent, ""); err != nil {
		return "", nil, err
	}
	kubeconfig := filepath.Join(folder, "cluster.yaml")
	if err := clientcmd.WriteToFile(*c.kubeconfig, kubeconfig); err != nil {
		os.RemoveAll(folder)
		return "", nil, err
	}
	for name, value := range map[string]string{
		"KUBECONFIG": kubeconfig, "KUBECACHEDIR": filepath.Join(root, ".local/cache"),
		"KUBERC": "off", // the user's own would change what the commands of the buttons do
		"PATH":   filepath.Join(root, ".local/bin") + ":" + os.Getenv("PATH"),
	} {
		_ = os.Setenv(name, value) // these names are possible
	}
	// cat ends when undo closes its input, or when this process ends, even if it is killed.
	command := exec.Command("sh", "-c", "cat;"+cleanUp, folder)
	command.Stderr = os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C must not end it
	input, err := command.StdinPipe()
	if err == nil {
		err = command.Start()
	}
	return folder, func() {
		input.Close()
		_ = command.Wait()
	}, err
}
