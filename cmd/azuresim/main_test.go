// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"karpenter/cloud/azure/azurefake"
)

// program is a run of azuresim, and a client that trusts it.
type program struct {
	*http.Client
	t   *testing.T
	url string
}

// session is one run of the program, until use returns.
func session(t *testing.T, use func(*program), args ...string) {
	t.Helper()
	directory := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := run(ctx, append([]string{"--directory", directory}, args...), in, t.Output())
		_ = in.CloseWithError(err)
		done <- err
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "ready url=")
	if !ok {
		t.Errorf("it said %q", line)
	}
	authority, err := os.ReadFile(filepath.Join(directory, "ca.crt"))
	if err != nil {
		t.Error(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority)
	p := &program{&http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}}}, t, url}
	use(p)
	p.CloseIdleConnections()
	cancel()
	if err := <-done; err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// send sends a request, and returns the status and the answer.
func (p *program) send(method, path, body string, headers ...string) (int, string) {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), method, p.url+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+azurefake.Token)
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	answer, err := p.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// vms returns the ARM IDs of the virtual machines.
func (p *program) vms() []string {
	p.t.Helper()
	status, text := p.send(http.MethodGet, "/_azuresim/vms", "")
	var all []azurefake.VM
	if err := json.Unmarshal([]byte(text), &all); status != http.StatusOK || err != nil {
		p.t.Fatalf("%d %s: %v", status, text, err)
	}
	var out []string
	for _, vm := range all {
		if !vm.Deleting {
			out = append(out, vm.ID)
		}
	}
	return out
}

const (
	subscription = "/subscriptions/00000000-0000-0000-0000-000000000001"
	pool         = subscription + "/resourceGroups/sandbox/providers/Microsoft.ContainerService/managedClusters/sandbox/agentPools/machines"
	group        = subscription + "/resourceGroups/MC_sandbox/providers/"
)

// launch makes an AKS machine.
func (p *program) launch(name string) int {
	p.t.Helper()
	status, _ := p.send(http.MethodPut, pool+"/machines/"+name+"?api-version=2025-10-02-preview", `{"zones":["1"],"properties":{
		"hardware":{"vmSize":"Standard_D4s_v3"},"operatingSystem":{},"kubernetes":{},"priority":"Spot","nodeImageVersion":"AKSUbuntu-2404gen2containerd-202607.10.0"}}`,
		"If-None-Match", "*")
	return status
}

// TestSubscriptionSurvivesRestart: with --journal the next run has the same virtual machines and
// network interfaces, also if azuresim was killed while writing.
func TestSubscriptionSurvivesRestart(t *testing.T) {
	journal := filepath.Join(t.TempDir(), "azuresim.journal")
	var first []string
	session(t, func(p *program) {
		for _, name := range []string{"a", "b"} {
			if status := p.launch(name); status != http.StatusCreated {
				t.Errorf("launch of %s: %d", name, status)
			}
		}
		if status := p.launch("a"); status != http.StatusPreconditionFailed {
			t.Errorf("another launch of a: %d", status)
		}
		subnet := group + "Microsoft.Network/virtualNetworks/aks-vnet-12345678/subnets/aks-subnet"
		status, text := p.send(http.MethodPut, group+"Microsoft.Network/networkInterfaces/aks-c?api-version=2025-05-01",
			`{"properties":{"ipConfigurations":[{"properties":{"primary":true,"subnet":{"id":"`+subnet+`"}}}]}}`)
		if status != http.StatusCreated {
			t.Errorf("network interface: %d %s", status, text)
		}
		first = p.vms()
	}, "--journal", journal)
	file, err := os.OpenFile(journal, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteString(`{"at":"20`)
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	session(t, func(p *program) {
		if got := p.vms(); len(got) != 2 || !slices.Equal(got, first) {
			t.Fatalf("after a restart there are %v, want %v", got, first)
		}
		if _, text := p.send(http.MethodGet, "/_azuresim/interfaces", ""); strings.TrimSpace(text) != `["aks-c"]` {
			t.Errorf("network interfaces %s", text)
		}
		if status, text := p.send(http.MethodPost, pool+"/deleteMachines?api-version=2025-10-02-preview", `{"machineNames":["a"]}`); status != http.StatusAccepted {
			t.Errorf("deletion: %d %s", status, text)
		}
		if status := p.launch("d"); status != http.StatusCreated {
			t.Errorf("launch of d: %d", status)
		}
	}, "--journal", journal)
	session(t, func(p *program) {
		if got := p.vms(); len(got) != 2 || got[0] != first[1] || !strings.Contains(got[1], "/aks-machines-d-") {
			t.Errorf("after another restart there are %v", got)
		}
	}, "--journal", journal)
	// A cluster with other resource groups is another one.
	session(t, func(p *program) {
		if got := p.vms(); len(got) != 0 {
			t.Errorf("another cluster has %v", got)
		}
	}, "--journal", journal, "--node-resource-group", "MC_another", "--resource-group", "another")
	if _, err := os.Stat(journal + ".unusable"); err != nil {
		t.Error(err)
	}
}

func TestInvalidFlagsFailAtOnce(t *testing.T) {
	directory := t.TempDir()
	for args, want := range map[string]string{
		"serve":         "there are only flags",
		"":              "--directory is required",
		"--every 0s":    "a delay must be more than 0",
		"--journal x/y": "open --journal",
		"--region mars": "--region mars",
	} {
		fields := strings.Fields(args)
		if args != "" {
			fields = append([]string{"--directory", directory}, fields...)
		}
		err := run(t.Context(), fields, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}
