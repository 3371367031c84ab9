// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	v1 "karpenter/api/v1"
	"karpenter/cloud/azure/azurefake"
	"karpenter/cloud/azure/azurefake/boot"
	"karpenter/cloud/azure/instancetype"
	"karpenter/cloud/azurevm"
	"karpenter/internal/journal"
)

// secret is what who wants a token must send in the header X-IDENTITY-HEADER.
const secret = "azuresim"

// run serves the subscription and boots its virtual machines until ctx is done.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(stderr, nil))
	azure, err := o.cloud(log)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return fmt.Errorf("listen at --listen %s: %w", o.listen, err)
	}
	url := "https://" + listener.Addr().String()
	certificate, err := o.write(url)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	if o.kubeconfig != "" {
		server, kube, err := connect(o.kubeconfig)
		if err != nil {
			return err
		}
		group.Go(func() error {
			return boot.Run(ctx, boot.Config{
				Azure: azure, Kube: kube, Server: server, Region: o.region, Every: o.every, Overhead: o.memoryOverhead, Clock: clock.RealClock{},
				Log: log,
			})
		})
	}
	group.Go(func() error { return o.serve(ctx, listener, certificate, azure) })
	if _, err := fmt.Fprintf(stdout, "ready url=%s\n", url); err != nil {
		return err
	}
	return group.Wait()
}

// cloud makes the subscription, or continues with that of the journal.
func (o *options) cloud(log *slog.Logger) (*azurefake.Cloud, error) {
	sizes, err := azurevm.Sizes()
	if err != nil {
		return nil, err
	}
	prices, err := azurevm.StaticPrices(o.region)
	if err != nil {
		return nil, err
	}
	skus := azurevm.Offered(sizes, o.region)
	if len(skus) == 0 {
		return nil, fmt.Errorf("--region %s: the sizes are known of %v", o.region, azurevm.Regions(sizes))
	}
	config := azurefake.Config{
		Clock: clock.RealClock{}, Subscription: o.subscription, ResourceGroup: o.group, Cluster: o.cluster, NodeGroup: o.nodeGroup, Region: o.region,
		Pools: map[string]string{o.pool: "Machines"}, SKUs: skus, Subnets: []string{o.subnet()},
		ImageVersions: []string{"202607.9.0", "202607.10.0"}, Creation: o.creation, Deletion: o.deletion, Prices: prices,
		SecurityGroups: []string{"aks-agentpool-12345678-nsg"}, Balancers: map[string][]azurefake.BackendPool{"kubernetes": {{Name: "aksOutboundBackendPool"}}},
	}
	if o.journal == "" {
		return azurefake.New(config), nil
	}
	return journal.Open(o.journal, log, func(past []azurefake.Entry, record func(azurefake.Entry)) (*azurefake.Cloud, error) {
		config.Record = record
		return azurefake.Restore(config, past)
	})
}

// subnet is the ARM ID of the cluster's only subnet.
func (o *options) subnet() string {
	return "/subscriptions/" + o.subscription + "/resourceGroups/" + o.nodeGroup + "/providers/Microsoft.Network/virtualNetworks/aks-vnet-12345678/subnets/aks-subnet"
}

// connect returns the URL of the API server, and an administrator's client.
func connect(kubeconfig string) (server string, kube kubernetes.Interface, err error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return "", nil, fmt.Errorf("read --kubeconfig %s: %w", kubeconfig, err)
	}
	config.QPS = -1 // machines do not wait for each other
	kube, err = kubernetes.NewForConfig(config)
	return config.Host, kube, err
}

// write makes the certificate of the URL's host, and writes what programs need.
func (o *options) write(url string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "azuresim"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	endpoints, err := json.Marshal(map[string]string{"resourceManagerEndpoint": url, "activeDirectoryEndpoint": url, "tokenAudience": url, "retailPricesEndpoint": url + azurefake.PriceListPath})
	if err != nil {
		return tls.Certificate{}, err
	}
	if err := os.MkdirAll(o.directory, 0o700); err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, errors.Join(
		os.WriteFile(filepath.Join(o.directory, "ca.crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(filepath.Join(o.directory, "cloud.json"), endpoints, 0o600),
	)
}

// serve answers requests until ctx is done.
func (o *options) serve(ctx context.Context, listener net.Listener, certificate tls.Certificate, azure *azurefake.Cloud) error {
	mux := http.NewServeMux()
	mux.Handle("/", azure.Handler())
	mux.Handle("GET "+azurefake.PriceListPath, azure.PriceList())
	mux.HandleFunc("GET /identity", giveToken)
	mux.HandleFunc("GET /_azuresim/prices", func(w http.ResponseWriter, _ *http.Request) { o.writePrices(w, azure) })
	mux.HandleFunc("GET /_azuresim/vms", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, azure.VMs()) })
	mux.HandleFunc("GET /_azuresim/interfaces", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, slices.Sorted(maps.Keys(azure.Interfaces())))
	})
	mux.HandleFunc("GET /_azuresim/calls", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, azure.Calls()) })
	mux.HandleFunc("POST /_azuresim/evict", func(w http.ResponseWriter, r *http.Request) {
		azure.Evict(r.URL.Query().Get("pool"), r.URL.Query().Get("machine"))
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST /_azuresim/preempt", func(w http.ResponseWriter, r *http.Request) {
		if node := r.URL.Query().Get("node"); !azure.Preempt(node) {
			http.Error(w, "there is no spot virtual machine "+node, http.StatusNotFound)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	server := &http.Server{
		Handler: mux, ReadHeaderTimeout: 10 * time.Second,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// giveToken answers as the managed identity of an App Service does.
func giveToken(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("X-IDENTITY-HEADER") != secret {
		http.Error(w, `{"error":"invalid_request"}`, http.StatusBadRequest)
		return
	}
	writeJSON(w, map[string]string{
		"access_token": azurefake.Token, "token_type": "Bearer", "resource": r.URL.Query().Get("resource"),
		"expires_on": strconv.FormatInt(time.Now().Add(24*time.Hour).Unix(), 10),
	})
}

// writePrices writes a line for each offering: size, zone, capacity type and dollars
// per hour, as Kubernetes names them.
func (o *options) writePrices(w io.Writer, azure *azurefake.Cloud) {
	for _, p := range azure.Prices() {
		capacityType := v1.CapacityTypeOnDemand
		if p.Spot {
			capacityType = v1.CapacityTypeSpot
		}
		fmt.Fprintf(w, "%s %s %s %v\n", p.Size, instancetype.ZoneLabel(o.region, p.Zone), capacityType, p.Dollars)
	}
}

func writeJSON(w http.ResponseWriter, what any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(what) // the client may be gone
}
