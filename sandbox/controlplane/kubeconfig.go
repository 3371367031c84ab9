// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// superusers is the group that Kubernetes grants everything, whatever RBAC says.
const superusers = "system:masters"

// writeKubeconfig writes a self-contained kubeconfig of the user, a superuser, to path. The file appears whole or not
// at all.
func writeKubeconfig(path, user string, authority *pki, apiPort int, now time.Time) error {
	cert, key, err := authority.issueClient(user, superusers, now)
	if err != nil {
		return err
	}
	const name = "sandbox"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{
		Server:                   "https://" + net.JoinHostPort(loopback, strconv.Itoa(apiPort)),
		CertificateAuthorityData: authority.pem,
	}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: user}
	config.CurrentContext = name
	text, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("encode kubeconfig: %w", err)
	}
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
