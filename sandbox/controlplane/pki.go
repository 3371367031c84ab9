// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	authorityLifetime   = 10 * 365 * 24 * time.Hour
	certificateLifetime = 365 * 24 * time.Hour
)

// pki is the cluster's certificate authority and service-account key, kept in a folder for the cluster's life.
// Certificates are issued again at every start; older ones stay valid until they expire.
type pki struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte // the authority's certificate
}

func (p *pki) caPath() string         { return filepath.Join(p.dir, "ca.crt") }
func (p *pki) caKey() string          { return filepath.Join(p.dir, "ca.key") }
func (p *pki) servingCert() string    { return filepath.Join(p.dir, "apiserver.crt") }
func (p *pki) servingKey() string     { return filepath.Join(p.dir, "apiserver.key") }
func (p *pki) serviceAccount() string { return filepath.Join(p.dir, "service-account.key") }

// openPKI reads the authority and keys in dir, making those that are absent, and issues the serving certificate.
func openPKI(dir string, now time.Time) (*pki, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	p := &pki{dir: dir}
	if err := p.openAuthority(now); err != nil {
		return nil, err
	}
	if _, err := os.Stat(p.serviceAccount()); errors.Is(err, fs.ErrNotExist) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, err
		}
		if err := writeKey(p.serviceAccount(), key); err != nil {
			return nil, err
		}
	}
	cert, key, err := p.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
			"kubernetes.default.svc.cluster.local"},
		IPAddresses: []net.IP{net.ParseIP(loopback), net.IPv6loopback, net.ParseIP(firstServiceIP)},
	}, now)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(p.servingCert(), cert, 0o600); err != nil {
		return nil, err
	}
	return p, os.WriteFile(p.servingKey(), key, 0o600)
}

func (p *pki) openAuthority(now time.Time) error {
	keyPath := p.caKey()
	certPEM, err := os.ReadFile(p.caPath())
	if errors.Is(err, fs.ErrNotExist) {
		return p.createAuthority(keyPath, now)
	}
	if err != nil {
		return err
	}
	keyPEM, err := os.ReadFile(keyPath)
	if err != nil {
		return err
	}
	certBlock, _ := pem.Decode(certPEM)
	keyBlock, _ := pem.Decode(keyPEM)
	if certBlock == nil || keyBlock == nil {
		return fmt.Errorf("%s and its key are not PEM; delete the data folder to begin a new cluster", p.caPath())
	}
	if p.cert, err = x509.ParseCertificate(certBlock.Bytes); err != nil {
		return fmt.Errorf("read %s: %w", p.caPath(), err)
	}
	if p.key, err = x509.ParseECPrivateKey(keyBlock.Bytes); err != nil {
		return fmt.Errorf("read %s: %w", keyPath, err)
	}
	p.pem = certPEM
	return nil
}

// createAuthority writes the key first: the certificate's presence means that both are complete.
func (p *pki) createAuthority(keyPath string, now time.Time) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "sandbox"},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(authorityLifetime),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	if p.cert, err = x509.ParseCertificate(der); err != nil {
		return err
	}
	p.key = key
	p.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := writeKey(keyPath, key); err != nil {
		return err
	}
	return os.WriteFile(p.caPath(), p.pem, 0o600)
}

// issueClient returns a certificate and key, in PEM, of a user in the given group.
func (p *pki) issueClient(user, group string, now time.Time) (cert, key []byte, err error) {
	return p.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: []string{group}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, now)
}

// issue completes the template, and signs it for a new key.
func (p *pki) issue(template *x509.Certificate, now time.Time) (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, err
	}
	template.SerialNumber = serial
	template.NotBefore = now.Add(-time.Hour)
	template.NotAfter = now.Add(certificateLifetime)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, p.cert, private.Public(), p.key)
	if err != nil {
		return nil, nil, fmt.Errorf("sign certificate of %s: %w", template.Subject.CommonName, err)
	}
	keyPEM, err := encodeKey(private)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), keyPEM, err
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	text, err := encodeKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}
