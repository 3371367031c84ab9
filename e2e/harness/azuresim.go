// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// Azure is bin/azuresim, an Azure subscription in memory, for one test.
type Azure struct {
	*Server
	directory string
}

// StartAzure runs bin/azuresim until the test ends. Its virtual machines join the
// cluster. The arguments are flags of azuresim.
func (c *Cluster) StartAzure(t testing.TB, args ...string) *Azure {
	t.Helper()
	directory := t.TempDir()
	process := exec.Command(program(t, "azuresim"), append([]string{"--kubeconfig", c.Kubeconfig, "--directory", directory}, args...)...)
	output, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	return &Azure{startServer(t, process, output, regexp.MustCompile(`^ready url=(\S+)`)), directory}
}

// Environment is what makes bin/karpenter take the server for Azure, and its cluster
// for the one that it is in, as NAME=value.
func (a *Azure) Environment() []string {
	const subscription = "00000000-0000-0000-0000-000000000001"
	return []string{
		"SSL_CERT_FILE=" + filepath.Join(a.directory, "ca.crt"), "AZURE_ENVIRONMENT_FILEPATH=" + filepath.Join(a.directory, "cloud.json"),
		"IDENTITY_ENDPOINT=" + a.URL + "/identity", "IDENTITY_HEADER=azuresim",
		"CLOUD_PROVIDER=azure", "CLUSTER_NAME=sandbox", "LOCATION=eastus", "AZURE_SUBSCRIPTION_ID=" + subscription, "ARM_RESOURCE_GROUP=sandbox",
		"AZURE_NODE_RESOURCE_GROUP=MC_sandbox", "PROVISION_MODE=aksmachineapi", "AKS_MACHINES_POOL_NAME=machines", "SIG_SUBSCRIPTION_ID=00000000-0000-0000-0000-000000000002",
		"VNET_SUBNET_ID=/subscriptions/" + subscription + "/resourceGroups/MC_sandbox/providers/Microsoft.Network/virtualNetworks/aks-vnet-12345678/subnets/aks-subnet",
	}
}

// Read decodes what the server tells at a path.
func (a *Azure) Read(t testing.TB, path string, into any) {
	t.Helper()
	answer, err := a.client(t).Get(a.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// Evict takes the virtual machine of an AKS machine away.
func (a *Azure) Evict(t testing.TB, machine string) {
	t.Helper()
	answer, err := a.client(t).Post(a.URL+"/_azuresim/evict?pool=machines&machine="+machine, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusNoContent {
		t.Fatalf("evict: %s", answer.Status)
	}
}

// client returns one that trusts the server.
func (a *Azure) client(t testing.TB) *http.Client {
	t.Helper()
	authority, err := os.ReadFile(filepath.Join(a.directory, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}}}
}
