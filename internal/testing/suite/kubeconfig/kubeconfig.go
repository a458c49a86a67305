// Package kubeconfig writes the kubeconfigs of programs under test.
package kubeconfig

import (
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Write writes a copy of config into dir, and returns its path. A program that uses it acts as
// user, so the audit log shows what it did. The user is in system:masters: it may do everything,
// and API Priority and Fairness exempts it. change, unless it is nil, changes the copy further.
func Write(
	dir string, config *clientcmdapi.Config, user string, change func(*clientcmdapi.Config),
) (path string, err error) {
	config = config.DeepCopy()
	for _, info := range config.AuthInfos {
		info.Impersonate, info.ImpersonateGroups = user, []string{"system:masters"}
	}
	if change != nil {
		change(config)
	}
	path = filepath.Join(dir, user+".yaml")
	return path, clientcmd.WriteToFile(*config, path)
}
