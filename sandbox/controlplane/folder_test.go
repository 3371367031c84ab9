// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestPortsAreKeptWhileFree(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ports.json")
	first, moved, err := choosePorts(path)
	if err != nil || moved {
		t.Fatalf("moved %t, %v", moved, err)
	}
	again, moved, err := choosePorts(path)
	if err != nil || moved || again != first {
		t.Errorf("chose %+v after %+v (moved %t, %v)", again, first, moved, err)
	}
	squatter, err := net.Listen("tcp", fmt.Sprintf("%s:%d", loopback, first.API))
	if err != nil {
		t.Fatal(err)
	}
	defer squatter.Close()
	other, moved, err := choosePorts(path)
	if err != nil || !moved || other.API == first.API || other.EtcdClient != first.EtcdClient {
		t.Errorf("chose %+v after %+v with the API port taken (moved %t, %v)", other, first, moved, err)
	}
}

func TestAuthorityOutlivesRestarts(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	first, err := openPKI(dir, now)
	if err != nil {
		t.Fatal(err)
	}
	serviceAccountKey, err := os.ReadFile(first.serviceAccount())
	if err != nil {
		t.Fatal(err)
	}
	oldCert, _, err := first.issueClient("admin", superusers, now)
	if err != nil {
		t.Fatal(err)
	}
	again, err := openPKI(dir, now)
	if err != nil {
		t.Fatal(err)
	}
	if key, err := os.ReadFile(again.serviceAccount()); err != nil || !bytes.Equal(key, serviceAccountKey) {
		t.Errorf("the service-account key changed (%v)", err)
	}
	block, _ := pem.Decode(oldCert)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(again.cert)
	if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Errorf("an old kubeconfig's certificate is no longer valid: %v", err)
	}
}

func TestFolderIsLockedOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	lock, err := lockDir(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lockDir(t.Context(), path); err == nil || !strings.Contains(err.Error(), "another sandbox") {
		t.Errorf("second lock: %v", err)
	}
	lock.Close()
	again, err := lockDir(t.Context(), path)
	if err != nil {
		t.Fatalf("after release: %v", err)
	}
	again.Close()
}
