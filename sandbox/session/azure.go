// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"karpenter/sandbox/process"
)

// What the simulated Azure is called.
const (
	azureRegion       = "eastus"
	azureSubscription = "00000000-0000-0000-0000-000000000001"
	azureNodeGroup    = "MC_" + ClusterName
	azurePool         = "machines"
)

// startAzure starts the simulated Azure, whose machines join the cluster, and returns what the controller must know. The
// subscription is kept in the cluster's folder, so that a cluster that is continued has its machines.
func (s *Session) startAzure(ctx context.Context, options *Options) ([]string, error) {
	fmt.Fprintln(options.Report, "sandbox: starting the simulated Azure")
	if options.Helm == "" {
		if err := s.ApplyAbsent(ctx, bootstrapRights()); err != nil {
			return nil, fmt.Errorf("give nodes the right to join: %w", err)
		}
	}
	free, err := freePorts()
	if err != nil {
		return nil, err
	}
	address := fmt.Sprintf("127.0.0.1:%d", free.metrics)
	directory := filepath.Join(s.dir, "azure")
	if err := os.RemoveAll(directory); err != nil { // of the run before
		return nil, err
	}
	if err := s.startSimulator(options, AzureSimulatorName,
		"--listen", address, "--kubeconfig", s.Kubeconfig(), "--directory", directory, "--region", azureRegion, "--subscription", azureSubscription,
		"--cluster-name", ClusterName, "--resource-group", ClusterName, "--node-resource-group", azureNodeGroup, "--pool", azurePool,
		"--journal", filepath.Join(s.dir, "azuresim.journal")); err != nil {
		return nil, err
	}
	environment := filepath.Join(directory, "cloud.json")
	if err := s.awaitEnvironment(ctx, environment); err != nil {
		return nil, err
	}
	s.simulatorURL = "https://" + address
	if s.azure, err = trusting(filepath.Join(directory, "ca.crt")); err != nil {
		return nil, err
	}
	if s.prices, err = s.awaitPrices(ctx, s.azure, s.simulatorURL+"/_azuresim/prices"); err != nil {
		return nil, err
	}
	return []string{
		"CLOUD_PROVIDER=" + Azure, "CLUSTER_NAME=" + ClusterName, "CLUSTER_ENDPOINT=" + s.config.Host, "LOCATION=" + azureRegion,
		"AZURE_SUBSCRIPTION_ID=" + azureSubscription, "ARM_RESOURCE_GROUP=" + ClusterName, "AZURE_NODE_RESOURCE_GROUP=" + azureNodeGroup,
		"PROVISION_MODE=" + options.ProvisionMode, "AKS_MACHINES_POOL_NAME=" + azurePool, "SIG_SUBSCRIPTION_ID=" + azureSubscription,
		// A cluster can be continued in the other mode.
		"MANAGE_EXISTING_AKS_MACHINES=true", "SSH_PUBLIC_KEY=ssh-rsa AAAA",
		"VNET_SUBNET_ID=/subscriptions/" + azureSubscription + "/resourceGroups/" + azureNodeGroup +
			"/providers/Microsoft.Network/virtualNetworks/aks-vnet-12345678/subnets/aks-subnet",
		"SSL_CERT_FILE=" + filepath.Join(directory, "ca.crt"), "AZURE_ENVIRONMENT_FILEPATH=" + environment,
		"IDENTITY_ENDPOINT=" + s.simulatorURL + "/identity", "IDENTITY_HEADER=" + AzureSimulatorName,
	}, nil
}

// bootstrapRights are what the chart gives to those who come with a bootstrap token of the controller: they may ask for the
// certificate of a kubelet, and get it.
func bootstrapRights() []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for name, role := range map[string]string{"bootstrap": "system:node-bootstrapper", "approve": "system:certificates.k8s.io:certificatesigningrequests:nodeclient"} {
		out = append(out, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": map[string]any{"name": release + "-node-" + name},
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
			"subjects": []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:bootstrappers:karpenter"}},
		}})
	}
	return out
}

// awaitEnvironment waits until the simulated Azure has written how it is reached, which is when it answers. It polls, as
// there is nothing to watch.
func (s *Session) awaitEnvironment(ctx context.Context, path string) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		text, err := os.ReadFile(path)
		if err == nil && json.Valid(text) {
			return nil
		}
		if s.simulator.Failures() > 0 {
			return s.simulatorEnded()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the simulated Azure: %w", context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// Preempt has the simulated Azure take the spot machine of a Node back: it tells the Node, and half a minute later the
// machine is gone.
func (s *Session) Preempt(ctx context.Context, node string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.simulatorURL+"/_azuresim/preempt?node="+url.QueryEscape(node), nil)
	if err != nil {
		return err
	}
	answer, err := s.azure.Do(request)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusNoContent {
		err = fmt.Errorf("the simulated Azure does not take %s back: %s", node, answer.Status)
	}
	return errors.Join(err, answer.Body.Close())
}

// trusting returns a client that trusts the certificate in the file.
func trusting(file string) (*http.Client, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate", file)
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}}}, nil
}

// startSimulator starts a simulated cloud; what the run before logged is kept.
func (s *Session) startSimulator(options *Options, name string, args ...string) error {
	log := filepath.Join(s.dir, "logs", name+".log")
	if err := keepPrevious(log); err != nil {
		return err
	}
	var err error
	s.simulator, err = process.Start(process.Spec{
		Name: name, Path: options.Simulator, LogPath: log, PIDPath: filepath.Join(s.dir, "pids", name), Args: args,
	}, func(exit process.Exit) { fmt.Fprintln(options.Report, "sandbox:", exit) })
	return err
}
